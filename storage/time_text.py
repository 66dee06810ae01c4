"""Formats times and durations for people, and converts times. Numbers are milliseconds."""

from datetime import UTC, datetime

_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))


def utc(time_ms: int) -> str:
    """Format a time since 1970; one outside the calendar's range stays a number."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms since 1970"
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")


def utc_ms(moment: datetime) -> int:
    """Milliseconds since 1970 of a time, which is in UTC if it has no zone."""
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(zoned.timestamp() * 1000)


def duration(duration_ms: int) -> str:
    """Format a duration in the largest unit that divides it."""
    units = (unit for unit in _UNITS if duration_ms and duration_ms % unit[1] == 0)
    return _in_unit(duration_ms, next(units, None))


def rounded(duration_ms: int) -> str:
    """Format a duration in the largest unit that it has reached, rounded down."""
    units = (unit for unit in _UNITS if duration_ms >= unit[1])
    return _in_unit(duration_ms, next(units, None))


def _in_unit(duration_ms: int, unit: tuple[str, int] | None) -> str:
    if unit is None:
        return f"{duration_ms} ms"
    count = duration_ms // unit[1]
    return f"{count} {unit[0]}{'' if count == 1 else 's'}"
