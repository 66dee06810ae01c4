"""The requests by which groups are kept give way to all others.

A thousand members that learn of a rebalance answer it at once, and their requests arrive together:
served in one turn of the loop they would keep a producer's waiting for 50 ms and more. So a turn
gives them a millisecond, and the rest stay in their connections' buffers; the next turn begins
with those that wait longest, goes on with what else has arrived, and so forth. Nobody loses by
that: who waits here would have waited for those before it anyway.

The loop does not say when a turn begins; it is asked to call us in the next one as soon as some
requests were served, which for the odd heartbeat is not worth it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...protocol.api_keys import ApiKey

if TYPE_CHECKING:
    import asyncio

    from .connection import Connection

GIVES_WAY = frozenset(
    {
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
    }
)
TURN_S = 0.001
UNWATCHED = 16


class GroupTurns:
    """What this turn has left for them, and the connections whose requests wait for another."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._served = 0
        self._until = 0.0
        self._is_called = False
        self._waiting: deque[Connection] = deque()

    def has_room_for(self, connection: Connection) -> bool:
        """Whether its request may be served in this turn; if not, its `take_turn` is called."""
        self._served += 1
        if self._served <= UNWATCHED and not self._waiting:
            return True
        now = self._clock()
        if not self._is_called:
            self._until = now + TURN_S
            self._call()
        if now < self._until:
            return True
        self._waiting.append(connection)
        return False

    def _call(self) -> None:
        self._is_called = True
        self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_called = False
        self._served = 0
        if not self._waiting:
            return
        now = self._clock()
        self._until = now + TURN_S
        self._call()
        for _ in range(len(self._waiting)):
            self._waiting.popleft().take_turn()
            if self._clock() >= self._until:
                break
