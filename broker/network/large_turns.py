"""Serves one large request in a turn of the event loop, after the small ones that have arrived.

A Produce of 512 KiB takes a millisecond. Without this, a client with small requests waits for those
of all clients with large ones in each turn.
"""

from __future__ import annotations

import asyncio
from collections import deque

from .group_turns import TurnTaker

LARGE_BYTES = 256 * 1024


class LargeTurns:
    """The connections whose next request is large, and waits for its turn."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[TurnTaker] = deque()
        self._entitled: TurnTaker | None = None  # the connection whose turn it is

    def has_room_for(self, connection: TurnTaker) -> bool:
        """Whether the connection may be served now. If not, `take_turn` is called later."""
        if connection is self._entitled:
            self._entitled = None
            return True
        self._waiting.append(connection)
        if len(self._waiting) == 1:
            self._schedule()
        return False

    def _schedule(self) -> None:
        # The loop may run the first `call_soon` before it reads from the sockets, and runs the
        # second one after that.
        self._loop.call_soon(self._loop.call_soon, self._next)

    def _next(self) -> None:
        self._entitled = self._waiting.popleft()
        if self._waiting:
            self._schedule()
        self._entitled.take_turn()
        self._entitled = None
