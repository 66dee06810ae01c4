"""When a worker counts as hanging: it sends heartbeats from its event loop, and has become silent.

A worker that is stopped, or in an endless loop, still has its connections. Their clients would wait
until their requests time out, again and again. So it is killed and started again. While it starts,
the calls of its files send the heartbeats (starting_files.py).

The broker's own process may stand still, too. Then the heartbeats have arrived, and are not read
yet. So the time since the last check counts as one interval at most. Kafka: BrokerHeartbeatManager.
"""


class Heartbeats:
    """The heartbeats of one worker. Times are in milliseconds, of a clock that never jumps.

    `limit_ms` is how long it may be silent now: `first_ms` before its first heartbeat, if that is
    longer than the timeout.
    """

    def __init__(
        self, interval_ms: int, timeout_ms: int, now_ms: int, *, first_ms: int = 0
    ) -> None:
        self.limit_ms = max(timeout_ms, first_ms)
        self._interval_ms = interval_ms
        self._timeout_ms = timeout_ms
        self._checked_ms = now_ms
        self._silent_ms = 0

    def heard(self) -> None:
        """Note a sign of life."""
        self.limit_ms = self._timeout_ms
        self._silent_ms = 0

    def is_silent(self, now_ms: int) -> bool:
        """Whether there was none within the limit. To be asked once in each interval."""
        self._silent_ms += min(now_ms - self._checked_ms, self._interval_ms)
        self._checked_ms = now_ms
        return self._silent_ms >= self.limit_ms
