"""Which options there are. Their names do not care for case."""

from collections.abc import Collection, Iterable, Mapping

from .client_config import PREFIX
from .option_values import OptionError


def texts_by_name(
    given: Mapping[str, str],
    names: Iterable[str],
    refused: Mapping[str, str],
    *,
    passed_over: Collection[str] = (),
    purpose: str = "",
) -> dict[str, str]:
    """The options' texts by their names in full; those of the client's and others in lower case.

    `refused` (why) and `passed_over` are in lower case. Raises OptionError for those that are
    refused, and for what is no option.
    """
    known = {name.lower(): name for name in names}
    for name in map(str.lower, given):
        if name in refused:
            raise OptionError(f"Option '{name}' is not supported: {refused[name]}")
        if not name.startswith(PREFIX) and name not in known and name not in passed_over:
            raise OptionError(
                f"There is no option '{name}'{purpose}; there are {', '.join(known.values())}"
                f" and the client's own, which begin with '{PREFIX}'"
            )
    return {known.get(name.lower(), name.lower()): text for name, text in given.items()}
