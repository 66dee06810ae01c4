"""Limits the records per second.

Time in which nothing is sent (a wait for another attempt, a slow broker) gives credit for one
second at most. So after a pause records are not sent at full speed until the average is reached.
But a commit or a read that takes a part of a second does not lower the rate.
"""

from odradek.pipeline.sink.turns import Clock

_MAX_AT_ONCE = 5_000
_MAX_CREDIT_S = 1.0


class SendRate:
    """A rate. `chunk_records` is how many records to send at a time.

    That is a tenth of a second's worth, at most 5,000, and 5,000 without a rate.
    """

    def __init__(self, records_per_s: float | None, clock: Clock) -> None:
        self._rate = records_per_s
        self._clock = clock
        self._due: float | None = None  # when the next records may be sent
        self.chunk_records = _MAX_AT_ONCE
        if records_per_s is not None:
            self.chunk_records = min(max(int(records_per_s / 10), 1), _MAX_AT_ONCE)

    def reserve(self, records: int) -> float:
        """Count the next records, and return the seconds to wait before sending them."""
        if self._rate is None:
            return 0.0
        now = self._clock.now()
        if self._due is None:  # the time before the first record gives no credit
            self._due = now
        due = max(self._due, now - _MAX_CREDIT_S)
        self._due = due + records / self._rate
        return max(0.0, due - now)
