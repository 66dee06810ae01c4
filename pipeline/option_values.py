"""Parses options. Each function raises OptionError, which names the option."""

import re
from collections.abc import Collection, Iterable, Mapping

CLIENT_PREFIX = "kafka."  # of options that are settings of the Kafka client
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE = re.compile(r"(\d+)\s*([kmg]?b?)", re.IGNORECASE)
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|min|h|d)", re.IGNORECASE)


class OptionError(ValueError):
    """An option that is wrong, missing, unknown, or contradicts another."""


def canonical_options(
    given: Mapping[str, str],
    names: Iterable[str],
    refused: Mapping[str, str],
    *,
    ignored: Collection[str] = (),
    purpose: str = "",
) -> dict[str, str]:
    """Check the names of options, which are case-insensitive, and spell them as in `names`.

    Names of client settings and ignored options become lower case. `refused` maps a lower-case name
    to the reason. `ignored` holds lower-case names. Raises OptionError for an option that is
    refused or unknown. Of an unknown one, `purpose` (such as " for writing") follows the name.
    """
    known = {name.lower(): name for name in names}
    for name in map(str.lower, given):
        if name in refused:
            raise OptionError(f"Option '{name}' is not supported: {refused[name]}")
        if not name.startswith(CLIENT_PREFIX) and name not in known and name not in ignored:
            raise OptionError(
                f"Unknown option '{name}'{purpose}. Options are {', '.join(known.values())}"
                f" and those of the Kafka client, which begin with '{CLIENT_PREFIX}'"
            )
    return {known.get(name.lower(), name.lower()): text for name, text in given.items()}


def boolean(name: str, text: str) -> bool:
    """Parse true or false."""
    if text.strip().lower() not in ("true", "false"):
        raise OptionError(f"{name} must be true or false, not {text!r}")
    return text.strip().lower() == "true"


def positive(name: str, text: str) -> int:
    """Parse a number above zero."""
    number = integer(name, text)
    if number <= 0:
        raise OptionError(f"{name} must be a positive number, not {text!r}")
    return number


def integer(name: str, text: str) -> int:
    """Parse a signed 64-bit integer."""
    try:
        number = int(text.strip())
    except ValueError:
        raise OptionError(f"{name} must be a whole number, not {text!r}") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise OptionError(f"{name}: {text} does not fit into 64 bits")
    return number


def one_of(name: str, text: str, choices: Collection[str]) -> str:
    """Parse one of `choices`, which are lower case. `text` may be in any case."""
    word = text.strip().lower()
    if word not in choices:
        raise OptionError(f"{name} must be one of {', '.join(choices)}, not {text!r}")
    return word


def size_bytes(name: str, text: str) -> int:
    """Parse a size such as `67108864`, `64m` or `64MB`."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise OptionError(f"{name} must be a size such as 64m, not {text!r}")
    return int(match[1]) * _BYTES[match[2].lower().removesuffix("b")]


def duration_ms(name: str, text: str) -> int:
    """Parse a duration such as `15m`, `30s` or `500ms`."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise OptionError(f"{name} must be a duration such as 15m, 30s or 500ms, not {text!r}")
    return int(match[1]) * _MS[match[2].lower()]
