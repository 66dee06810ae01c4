"""One timer of the event loop, set for the earliest of a coordinator's deadlines.

When it fires, the deadlines that are due are called, for a millisecond in each turn of the loop: a
thousand members may have died at once. A deadline that is due at once still waits for
the loop's next turn, as an event of Kafka's waits for those queued before it. So members that join
at the same time begin one generation even where no rebalance delay is configured.
"""

import asyncio
from collections.abc import Callable

from .timers import DeadlineQueue, Now

# An alarm that fires later than this means that the loop, or the process, was blocked.
LATE_MS = 100
# How long one turn of the event loop calls deadlines.
TURN_MS = 1


class Alarm:
    """Calls the deadlines of its queue. A caller that schedules some then calls `set`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], Now],
        after_arrivals: Callable[[Callable[[], None]], None],
    ) -> None:
        """`after_arrivals` calls its argument when the requests that have arrived are served."""
        self.deadlines = DeadlineQueue()
        self._loop = loop
        self._clock = clock
        self._after_arrivals = after_arrivals
        self._timer: asyncio.TimerHandle | None = None
        self._at_ms = 0

    def set(self, now: Now) -> None:
        """Set the timer for the next deadline. One that is set for an earlier time stays."""
        at_ms = self.deadlines.next_deadline_ms
        if at_ms is None or (self._timer is not None and self._at_ms <= at_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._at_ms = at_ms
        self._timer = self._loop.call_later(max(at_ms - now.timer_ms, 0) / 1000, self._on_timer)

    def cancel(self) -> None:
        """Cancel the timer, until `set` is called again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def expire_due(self) -> None:
        """Call all deadlines that are due, and set the timer for the next one."""
        now = self._clock()
        try:
            self.deadlines.expire_due(now)
        finally:
            self.set(now)

    def _expire_some(self) -> None:
        """Call deadlines that are due, for a millisecond.

        The timer is set for the others. They are due, so the next turn of the loop calls them.
        """
        now = self._clock()
        try:
            self.deadlines.expire_due(now, lambda: self._clock().timer_ms < now.timer_ms + TURN_MS)
        finally:
            self.set(now)

    def _on_timer(self) -> None:
        """Call the deadlines that are due; if the timer is late, serve the waiting requests first.

        The process may have been stopped for longer than a session timeout, while the heartbeats of
        its members arrived. Until those are served `_timer` keeps the handle of the timer that has
        fired, so that no other is set for the same deadlines.
        """
        if self._clock().timer_ms - self._at_ms > LATE_MS:
            self._after_arrivals(self._expire)
        else:
            self._expire()

    def _expire(self) -> None:
        self._timer = None
        self._expire_some()
