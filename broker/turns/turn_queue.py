"""Divides the time of a turn of the event loop among those who want it.

A queue has a limit: the time that one turn spends on what it is for. What comes after that waits,
and the next turns serve it in the order of its arrival, each for the same time and at least one. So
any number of clients together delay others by the limit, and none of them loses: each would have
waited for those before it anyway.

The loop does not announce its turns. A turn begins when the queue is first asked for its time, and
ends with a callback that the loop runs after it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol


class TurnTaker(Protocol):
    """A connection whose next request waits for a turn."""

    def take_turn(self) -> None:
        """Called when the request that had to wait may be served."""


class TurnQueue:
    """The time that is left in this turn, and those who wait for a later one."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loop = loop
        self._limit_s = limit_s
        self._clock = clock
        self._ends_s = 0.0
        self._is_scheduled = False
        self._waiting: deque[Callable[[], object]] = deque()
        self._entitled: TurnTaker | None = None  # has waited, and asks again now

    def has_time(self) -> bool:
        """Whether this turn has time left, and nobody waits for it."""
        now_s = self._clock()
        if not self._is_scheduled:
            self._ends_s = now_s + self._limit_s
            self._schedule()
        return now_s < self._ends_s and not self._waiting

    def wait(self, callback: Callable[[], object]) -> None:
        """Call `callback` in a later turn."""
        self._waiting.append(callback)
        if not self._is_scheduled:
            self._schedule()

    def wait_for(self, connection: TurnTaker) -> None:
        """Have `take_turn` called in a later turn. In that call the connection is entitled."""
        self.wait(partial(self._serve, connection))

    def is_entitled(self, connection: TurnTaker) -> bool:
        """Whether the connection has waited for what it asks for now. It may ask once."""
        is_entitled = connection is self._entitled
        if is_entitled:
            self._entitled = None
        return is_entitled

    def _serve(self, connection: TurnTaker) -> None:
        self._entitled = connection
        connection.take_turn()
        self._entitled = None

    def _schedule(self) -> None:
        self._is_scheduled = True
        self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_scheduled = False
        if not self._waiting:
            return
        self._ends_s = self._clock() + self._limit_s
        self._schedule()
        for _ in range(len(self._waiting)):
            self._waiting.popleft()()
            if self._clock() >= self._ends_s:
                break
