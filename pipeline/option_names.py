"""Checks the names of options. They are case-insensitive, as Spark's are."""

from collections.abc import Collection, Iterable, Mapping

from .client_config import PREFIX
from .option_values import OptionError


def canonical_options(
    given: Mapping[str, str],
    names: Iterable[str],
    refused: Mapping[str, str],
    *,
    ignored: Collection[str] = (),
    purpose: str = "",
) -> dict[str, str]:
    """Return the options' values by canonical name; by lower-case name for those not in `names`.

    `refused` maps a lower-case name to the reason. `ignored` holds lower-case names. Raises
    OptionError for an option that is refused or unknown.
    """
    known = {name.lower(): name for name in names}
    for name in map(str.lower, given):
        if name in refused:
            raise OptionError(f"Option '{name}' is not supported: {refused[name]}")
        if not name.startswith(PREFIX) and name not in known and name not in ignored:
            raise OptionError(
                f"Unknown option '{name}'{purpose}. Options are {', '.join(known.values())}"
                f" and those of the Kafka client, which begin with '{PREFIX}'"
            )
    return {known.get(name.lower(), name.lower()): text for name, text in given.items()}
