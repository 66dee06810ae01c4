"""The two clocks of a broker, in milliseconds.

The wall clock is for timestamps that users see. All waiting goes by the timer clock, which never
jumps: a laptop that wakes up, or a corrected wall clock, must not expire every member.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from odradek.coordinator.runtime.timers import Now


def wall_clock_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def timer_clock_ms() -> int:
    """Milliseconds on a clock that never jumps."""
    return time.monotonic_ns() // 1_000_000


class Clock:
    """`now_ms` is the wall clock, `timer_ms` the clock of deadlines."""

    def __init__(
        self,
        now_ms: Callable[[], int] = wall_clock_ms,
        timer_ms: Callable[[], int] = timer_clock_ms,
    ) -> None:
        self.now_ms = now_ms
        self.timer_ms = timer_ms

    def now(self) -> Now:
        """This moment on both clocks."""
        return Now(self.now_ms(), self.timer_ms())
