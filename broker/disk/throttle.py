"""Limits the average number of bytes moved per second.

A Pace computes how long its caller on the event loop must wait. A Throttle sleeps by itself: it
checks the average after every 300 ms of work and sleeps until the average is right. The rate may
change at any time; a sleep follows the new rate within a second. Kafka: Throttler,
ReplicationQuotaManager.
"""

from __future__ import annotations

from collections.abc import Callable

CHECK_AFTER_SECONDS = 0.3
MAX_SLEEP_SECONDS = 1.0


class Pace:
    """Keeps an average rate since its start.

    `bytes_per_second` may be set: zero stops all work, below zero is no limit.
    """

    def __init__(self, bytes_per_second: float, *, now: Callable[[], float]) -> None:
        """`now` returns seconds since a fixed moment."""
        self.bytes_per_second = bytes_per_second
        self._now = now
        self._began = now()
        self._moved_bytes = 0

    def note(self, size_bytes: int) -> None:
        """Count bytes that were read or written."""
        self._moved_bytes += size_bytes

    def wait_seconds(self) -> float:
        """Seconds to wait before more bytes are moved. Zero or less: none."""
        return self._due() - self._now()

    def restart(self) -> None:
        """Start a new average, without credit or debt of the last one."""
        self._began = self._now()
        self._moved_bytes = 0

    def _due(self) -> float:
        """The earliest time at which the bytes counted so far are within the rate."""
        if self.bytes_per_second <= 0:
            return self._began if self.bytes_per_second < 0 else float("inf")
        return self._began + self._moved_bytes / self.bytes_per_second


class Throttle(Pace):
    """A Pace that sleeps by itself, in `moved`."""

    def __init__(
        self, bytes_per_second: float, *, now: Callable[[], float], sleep: Callable[[float], object]
    ) -> None:
        """`now` returns seconds since a fixed moment."""
        super().__init__(bytes_per_second, now=now)
        self._sleep = sleep

    def moved(self, size_bytes: int) -> None:
        """Count bytes that were read or written. Sleeps if that was too fast."""
        self.note(size_bytes)
        if self._now() - self._began < CHECK_AFTER_SECONDS:
            return
        while (wait := self.wait_seconds()) > 0:
            self._sleep(min(wait, MAX_SLEEP_SECONDS))
        self.restart()
