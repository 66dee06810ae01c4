"""Formats times and durations for people, and reads times."""

from datetime import UTC, datetime

_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))


def utc(time_ms: int) -> str:
    """Format a time; one outside the calendar's range stays a number."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms since 1970"
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")


def utc_ms(moment: datetime) -> int:
    """Milliseconds since 1970 of a time, which is in UTC if it has no zone."""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1000)


def duration(time_ms: int) -> str:
    """Format a duration in the largest unit that divides it."""
    return _in_unit(time_ms, next((u for u in _UNITS if time_ms and time_ms % u[1] == 0), None))


def rounded(time_ms: int) -> str:
    """Format a duration in the largest unit that it has reached, rounded down."""
    return _in_unit(time_ms, next((u for u in _UNITS if time_ms >= u[1]), None))


def _in_unit(time_ms: int, unit: tuple[str, int] | None) -> str:
    if unit is None:
        return f"{time_ms} ms"
    count = time_ms // unit[1]
    return f"{count} {unit[0]}{'' if count == 1 else 's'}"
