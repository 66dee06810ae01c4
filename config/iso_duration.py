"""Durations as ISO 8601 writes them, for example P1DT2H3M4.5S. Kafka: java.time.Duration.parse."""

import re

_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?"
    r"(?:T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_SECONDS = (86_400, 3_600, 60, 1)


def duration_ms(text: str) -> int:
    """Return the milliseconds of a duration, rounded down.

    Raises ValueError, also for more seconds than a long of Java can count.
    """
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()[1:5]) or text[-1:] in "tT":
        raise ValueError(f"{text!r} is not a duration as PnDTnHnMn.nS")
    sign, *parts, fraction = found.groups()
    seconds = sum(int(part or 0) * unit for part, unit in zip(parts, _SECONDS, strict=True))
    if not -(2**63) <= seconds < 2**63:
        raise ValueError(f"{text!r} is too long a duration")
    nanos = int((fraction or "").ljust(9, "0"))
    total = seconds * 1_000_000_000 + (-nanos if (parts[-1] or "")[:1] == "-" else nanos)
    return (-total if sign == "-" else total) // 1_000_000
