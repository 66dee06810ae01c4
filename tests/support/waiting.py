"""Waits for what another process does in its own time."""

import time
from collections.abc import Callable

LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.02


def wait_until(holds: Callable[[], object], *, poll_s: float = POLL_SECONDS) -> None:
    """Return when it holds; fails after a minute."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(poll_s)
