"""Serves one large request, or one slice of a request, in a turn of the event loop.

A client that has sent thousands of small requests at once waits here too, after a millisecond.

A Produce of 512 KiB takes a millisecond. Without this, a client with small requests waits for those
of all clients with large ones in each turn. Small requests that have arrived are served first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from .group_turns import TurnTaker

LARGE_BYTES = 256 * 1024
# A turn runs slices as soon as their requests arrive for about this time.
AT_ONCE_S = 0.0005


class LargeTurns:
    """A queue of connections whose next request is large, and of requests served in slices."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._rested_at_s = 0.0
        self._waiting: deque[Callable[[], object]] = deque()
        self._entitled: TurnTaker | None = None  # the connection whose turn it is

    def has_room_for(self, connection: TurnTaker) -> bool:
        """Whether the connection may be served now. If not, `take_turn` is called later."""
        if connection is self._entitled:
            self._entitled = None
            return True
        self._enqueue(partial(self._serve, connection))
        return False

    def wait(self, connection: TurnTaker) -> None:
        """Have `take_turn` called later, for a connection that has used up its time."""
        self._enqueue(connection.take_turn)

    def may_run_now(self, now_s: float) -> bool:
        """Whether a slice may run as soon as its request arrives."""
        return not self._waiting and self._rested_at_s - now_s < AT_ONCE_S

    def has_run(self, began_s: float, ended_s: float) -> None:
        """Note that such a slice has run: half of the time is for others."""
        self._rested_at_s = max(self._rested_at_s, began_s) + 2 * (ended_s - began_s)

    def next(self) -> asyncio.Future[None]:
        """Return a future that is done when the caller's turn comes."""
        turn: asyncio.Future[None] = self._loop.create_future()
        self._enqueue(partial(_grant, turn))
        return turn

    def _enqueue(self, take_turn: Callable[[], object]) -> None:
        self._waiting.append(take_turn)
        if len(self._waiting) == 1:
            self._schedule()

    def _schedule(self) -> None:
        # The loop may run the first `call_soon` before it reads from the sockets, and runs the
        # second one after that.
        self._loop.call_soon(self._loop.call_soon, self._next)

    def _next(self) -> None:
        take_turn = self._waiting.popleft()
        if self._waiting:
            self._schedule()
        take_turn()

    def _serve(self, connection: TurnTaker) -> None:
        self._entitled = connection
        connection.take_turn()
        self._entitled = None


def _grant(turn: asyncio.Future[None]) -> None:
    if not turn.done():  # its request was cancelled
        turn.set_result(None)
