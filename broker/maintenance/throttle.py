"""Holds work back so that on average no more bytes per second are moved than is allowed.

A Pace tells whoever works on the loop how long to wait; a Throttle sleeps itself, and looks only
every 300 ms of work: who was too fast sleeps until the average is right. The rate may change at any
time; a sleep goes by the new one within a second. Kafka: Throttler, ReplicationQuotaManager.
"""

from __future__ import annotations

from collections.abc import Callable

LOOK_AFTER_SECONDS = 0.3
LONGEST_SLEEP_SECONDS = 1.0


class Pace:
    """`bytes_per_second` may be set; zero is a full stop, below zero there is no limit."""

    def __init__(self, bytes_per_second: float, *, now: Callable[[], float]) -> None:
        """`now` gives seconds since whenever."""
        self.bytes_per_second = bytes_per_second
        self._now = now
        self._began = now()
        self._moved_bytes = 0

    def note(self, size_bytes: int) -> None:
        """So many bytes were read or written."""
        self._moved_bytes += size_bytes

    def early_seconds(self) -> float:
        """How long to wait before more is moved; not above zero: go on."""
        return self._due() - self._now()

    def restart(self) -> None:
        """Who was slow, or has waited, has no credit and no debt."""
        self._began = self._now()
        self._moved_bytes = 0

    def _due(self) -> float:
        """When so many bytes may have been moved at the earliest."""
        if self.bytes_per_second <= 0:
            return self._began if self.bytes_per_second < 0 else float("inf")
        return self._began + self._moved_bytes / self.bytes_per_second


class Throttle(Pace):
    """A pace that is kept by sleeping."""

    def __init__(
        self, bytes_per_second: float, *, now: Callable[[], float], sleep: Callable[[float], object]
    ) -> None:
        """`now` gives seconds since whenever."""
        super().__init__(bytes_per_second, now=now)
        self._sleep = sleep

    def moved(self, size_bytes: int) -> None:
        """So many bytes were read or written. Sleeps if that was too fast."""
        self.note(size_bytes)
        if self._now() - self._began < LOOK_AFTER_SECONDS:
            return
        while (early := self.early_seconds()) > 0:
            self._sleep(min(early, LONGEST_SLEEP_SECONDS))
        self.restart()
