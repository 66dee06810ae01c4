"""A queue for requests that would hold up others: one is served in each turn of the event loop.

A Produce of 512 KiB takes a millisecond. Without the queue, a client with small requests waits in
each turn for all clients with large ones. Small requests that have arrived are served first.

Three kinds wait here: requests of LARGE_BYTES or more; the slices of a request that is served in
slices (slices.py); and the rest of thousands of small requests that a client has sent at once, when
some have been served for a millisecond (connection.py).
"""

from __future__ import annotations

import asyncio
from functools import partial

from .turn_queue import TurnQueue, TurnTaker

LARGE_BYTES = 256 * 1024
# The first slices of requests run at once, without waiting here, for about this time in a row. Then
# they get half of the loop's time.
AT_ONCE_S = 0.0005


class LargeTurns(TurnQueue):
    """A queue of connections whose next request is large, and of requests served in slices."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop, limit_s=0.0)  # one in each turn
        # When the rests so far end. One follows each slice that has run at once, and is as long.
        self._rested_at_s = 0.0

    def has_room_for(self, connection: TurnTaker) -> bool:
        """Whether the connection may be served now. If not, `take_turn` is called later."""
        if self.is_entitled(connection):
            return True
        self.wait_for(connection)
        return False

    def may_run_now(self, now_s: float) -> bool:
        """Whether a first slice may run at once."""
        return not self._waiting and self._rested_at_s - now_s < AT_ONCE_S

    def has_run(self, began_s: float, ended_s: float) -> None:
        """Note that such a slice has run. It counts twice: as much time is left to others."""
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
    if not turn.done():  # it is if its request was cancelled
        turn.set_result(None)
