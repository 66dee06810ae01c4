"""Durations as tests give them."""

from datetime import timedelta


def milliseconds(duration: timedelta | int) -> int:
    """The milliseconds of a duration; an int is in milliseconds already."""
    return duration if isinstance(duration, int) else round(duration / timedelta(milliseconds=1))
