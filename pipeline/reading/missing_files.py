"""Reads again if a file is missing that was listed: a broker has replaced or deleted it since."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

_MAX_ATTEMPTS = 20
_WAIT_S = 0.05


def read_until_found(read: Callable[[], Result], is_directory_there: Callable[[], bool]) -> Result:
    """Return the result of `read`, which lists the files each time.

    Raises FileNotFoundError if there is no directory, or if a file stays missing.
    """
    for attempt in range(1, _MAX_ATTEMPTS):
        try:
            return read()
        except FileNotFoundError:
            if not is_directory_there():
                raise
        if attempt > 1:  # nearly always the first one has been enough
            time.sleep(_WAIT_S)
    return read()
