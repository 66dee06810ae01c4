"""Measures how long the event loop keeps a timer waiting: every request waits as long."""

from __future__ import annotations

import asyncio

from odradek.broker.common.durations import Durations

MEASURE_EVERY_S = 0.1


class LoopDelay:
    """Sets a timer again and again, and counts by how much it is late, until `close`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.durations = Durations()
        self._loop = loop
        self._set_timer()

    def close(self) -> None:
        self._timer.cancel()

    def _set_timer(self) -> None:
        self._due_s = self._loop.time() + MEASURE_EVERY_S
        self._timer = self._loop.call_at(self._due_s, self._measure)

    def _measure(self) -> None:
        # uvloop's timers have a resolution of a millisecond, and may be early by as much.
        self.durations.add(max(0.0, self._loop.time() - self._due_s))
        self._set_timer()
