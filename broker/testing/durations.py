"""Durations as tests give them."""

from datetime import timedelta


def milliseconds(duration: timedelta | int) -> int:
    """The milliseconds of a duration; an int is in milliseconds already. Raises TypeError."""
    if isinstance(duration, int):
        return duration
    if isinstance(duration, timedelta):
        return round(duration / timedelta(milliseconds=1))
    text = f"a duration is a timedelta or an int of milliseconds, not {duration!r}"
    raise TypeError(text)
