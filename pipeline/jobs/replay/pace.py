"""Limits the records per second."""

from odradek.pipeline.sink.turns import Clock

_MOST_AT_ONCE = 5_000


class Pace:
    """Records are sent `step` at a time: those of a tenth of a second, or many without a limit."""

    def __init__(self, records_per_s: float | None, clock: Clock) -> None:
        self._rate = records_per_s
        self._clock = clock
        self._began: float | None = None
        self._sent = 0
        self.step = _MOST_AT_ONCE
        if records_per_s is not None:
            self.step = min(max(int(records_per_s / 10), 1), _MOST_AT_ONCE)

    def wait_s(self, records: int) -> float:
        """Return how long to wait before the next records are sent."""
        if self._rate is None:
            return 0.0
        if self._began is None:  # with the first record, so that a late start is not made up for
            self._began = self._clock.now()
        due = self._began + self._sent / self._rate
        self._sent += records
        return max(0.0, due - self._clock.now())
