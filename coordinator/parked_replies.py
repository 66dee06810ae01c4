"""Replies that wait behind a future, and are released so many at each turn of the loop.

When the last of a thousand members has joined, a thousand joins are to be answered, and each answer
calls for the member's next request. Done in one turn of the loop, nobody else would be served for
the better part of a tenth of a second. So a turn releases as many as take less than a millisecond;
the others follow in the turns after it, in order, and what has arrived is served in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import Any, Generic, TypeVar

R = TypeVar("R")

RELEASED_PER_TURN = 32


class ReleaseQueue:
    """What is to be answered, and how much of it this turn has answered already."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiting: deque[tuple[asyncio.Future[Any], object]] = deque()
        self._released = 0

    def release(self, future: asyncio.Future[R], response: R) -> None:
        """Resolve a future, now or in one of the next turns; the client may have gone."""
        if self._released == RELEASED_PER_TURN:
            self._waiting.append((future, response))
            return
        if not self._released:
            self.loop.call_soon(self._next_turn)
        self._released += 1
        if not future.done():
            future.set_result(response)

    def _next_turn(self) -> None:
        self._released = 0
        for _ in range(min(len(self._waiting), RELEASED_PER_TURN)):
            self.release(*self._waiting.popleft())


class Parked(Generic[R]):
    """A reply: given at once it is a plain value, else a future that waits for it."""

    __slots__ = ("_future", "_queue", "_response")

    def __init__(self, queue: ReleaseQueue) -> None:
        self._queue = queue
        self._response: R | None = None
        self._future: asyncio.Future[R] | None = None

    def __call__(self, response: R) -> None:
        if self._future is None:
            self._response = response
        else:
            self._queue.release(self._future, response)

    def result(self) -> R | Awaitable[R]:
        """The response, or what to wait for."""
        if self._response is not None:
            return self._response
        self._future = self._queue.loop.create_future()
        return self._future
