"""A clock that a test can set and advance."""

from collections.abc import Callable

from odradek.broker.common.clock import timer_clock_ms, wall_clock_ms


class AdjustableClock:
    """The machine's clocks, with an offset that changes only by the methods here.

    The wall clock can be set to any time. The timer clock, by which session timeouts and other
    deadlines are measured, only goes forward.
    """

    def __init__(
        self,
        wall_ms: Callable[[], int] = wall_clock_ms,
        timer_ms: Callable[[], int] = timer_clock_ms,
    ) -> None:
        self._wall_ms = wall_ms
        self._timer_ms = timer_ms
        self._wall_offset_ms = 0
        self._timer_offset_ms = 0

    def wall_ms(self) -> int:
        """Milliseconds since 1970."""
        return self._wall_ms() + self._wall_offset_ms

    def timer_ms(self) -> int:
        """Milliseconds on a clock that never goes back."""
        return self._timer_ms() + self._timer_offset_ms

    def set_wall(self, wall_ms: int) -> None:
        """Set the wall clock. The timer clock stays: no deadline is reached by this."""
        self._wall_offset_ms = wall_ms - self._wall_ms()

    def advance(self, by_ms: int) -> None:
        """Move both clocks forward."""
        self._wall_offset_ms += by_ms
        self._timer_offset_ms += by_ms

    def reset_wall(self) -> None:
        """Set the wall clock to the machine's. The timer clock stays."""
        self._wall_offset_ms = 0
