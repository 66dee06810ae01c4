"""Replies that wait in futures, and are released a few in each turn of the event loop.

When the last of a thousand members has joined, a thousand joins are answered, and each answer
causes the member's next request. In one turn of the loop that would delay all other clients by
nearly a tenth of a second. So a turn releases only as many as take less than a millisecond. The
others follow in the next turns, in order, and requests that have arrived are served in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import Any, Generic, TypeVar

R = TypeVar("R")

RELEASED_PER_TURN = 32


class ReleaseQueue:
    """Futures to resolve, in order, at most RELEASED_PER_TURN in one turn of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiting: deque[tuple[asyncio.Future[Any], object]] = deque()
        self._released = 0

    def release(self, future: asyncio.Future[R], response: R) -> None:
        """Resolve a future now or in a later turn. One that was cancelled is ignored."""
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
    """A reply that may be given before or after `result` is called.

    Calling the object with the response gives the reply, once.
    """

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
        """Return the response if it was given already, else a future of it."""
        if self._response is not None:
            return self._response
        self._future = self._queue.loop.create_future()
        return self._future
