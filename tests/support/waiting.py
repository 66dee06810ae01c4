"""Waits for what another process does in its own time."""

import time
from collections.abc import Callable

LIMIT_SECONDS = 180.0  # on a machine with much else to do
POLL_SECONDS = 0.02


def wait_until(holds: Callable[[], object], *, poll_s: float = POLL_SECONDS) -> None:
    """Return when it holds; fails after three minutes."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(poll_s)


def wait_for(ask: Callable[[], object], expected: object) -> None:
    """Return when the answer is the expected one; fails after three minutes, and shows both.

    Kafka's broker learns of a change of metadata only after the controller has answered.
    """
    deadline = time.monotonic() + LIMIT_SECONDS
    while (found := ask()) != expected and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    assert found == expected
