"""Serves one large request, or one slice of a request, in a turn of the event loop.

A client that has sent thousands of small requests at once waits here too, after a millisecond.

A Produce of 512 KiB takes a millisecond. Without this, a client with small requests waits for those
of all clients with large ones in each turn. Small requests that have arrived are served first.
"""

from __future__ import annotations

import asyncio
from functools import partial

from .turn_queue import TurnQueue, TurnTaker

LARGE_BYTES = 256 * 1024
# A turn runs slices as soon as their requests arrive for about this time.
AT_ONCE_S = 0.0005


class LargeTurns(TurnQueue):
    """A queue of connections whose next request is large, and of requests served in slices."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop, limit_s=0.0)  # one in each turn
        self._rested_at_s = 0.0

    def has_room_for(self, connection: TurnTaker) -> bool:
        """Whether the connection may be served now. If not, `take_turn` is called later."""
        if self.is_entitled(connection):
            return True
        self.wait_for(connection)
        return False

    def may_run_now(self, now_s: float) -> bool:
        """Whether a slice may run as soon as its request arrives."""
        return not self._waiting and self._rested_at_s - now_s < AT_ONCE_S

    def has_run(self, began_s: float, ended_s: float) -> None:
        """Note that such a slice has run: half of the time is for others."""
        self._rested_at_s = max(self._rested_at_s, began_s) + 2 * (ended_s - began_s)

    def next(self) -> asyncio.Future[None]:
        """Return a future that is done when the caller's turn comes."""
        turn: asyncio.Future[None] = self._loop.create_future()
        self.wait(partial(_grant, turn))
        return turn

    def _schedule(self) -> None:
        # The loop may run the first `call_soon` before it reads from the sockets, and runs the
        # second one after that.
        self._is_scheduled = True
        self._loop.call_soon(self._loop.call_soon, self._next_turn)


def _grant(turn: asyncio.Future[None]) -> None:
    if not turn.done():  # its request was cancelled
        turn.set_result(None)
