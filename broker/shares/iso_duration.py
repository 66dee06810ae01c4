"""Durations as ISO 8601 writes them, for example P1DT2H3M4.5S. Kafka: java.time.Duration.parse."""

import re

_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?"
    r"(?:T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_SECONDS = (86_400, 3_600, 60, 1)


def duration_ms(text: str) -> int:
    """Return the milliseconds of a duration, rounded down. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()[1:5]) or text[-1:] in "tT":
        raise ValueError(f"{text!r} is not a duration as PnDTnHnMn.nS")
    sign, *parts, fraction = found.groups()
    seconds = sum(int(part or 0) * unit for part, unit in zip(parts, _SECONDS, strict=True))
    thousandths = int((fraction or "").ljust(3, "0")[:3])
    total = seconds * 1_000 + (-thousandths if (parts[-1] or "")[:1] == "-" else thousandths)
    return -total if sign == "-" else total
