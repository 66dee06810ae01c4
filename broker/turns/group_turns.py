"""Limits how long one turn of the event loop serves the requests of group members.

A thousand members that learn of a rebalance send their next requests at once. Served in one turn of
the loop, they would delay a producer by 50 ms and more. So each turn serves them for one
millisecond; the others stay in their connections' buffers.

After a stall of the process, heartbeats that came in time are still in the sockets:
`after_arrivals` has them served before the group coordinator expires any member.

A single heartbeat does not look at the clock: GroupTurns limits a turn as soon as several group
requests have been served.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from odradek.protocol.api_keys import ApiKey

from .turn_queue import TurnQueue, TurnTaker

# The APIs whose requests wait for a turn.
GROUP_APIS = frozenset(
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
# The number of requests that a turn serves before it reads the clock.
UNTIMED_REQUESTS = 16


class GroupTurns(TurnQueue):
    """The connections whose next request is one of GROUP_APIS, and must wait."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(loop, TURN_S, clock)
        self._served = 0  # since the queue last had a turn

    def has_room_for(self, connection: TurnTaker) -> bool:
        """Whether the connection may be served this turn. If not, `take_turn` is called later."""
        self._served += 1
        if self.is_entitled(connection):
            return True
        if self._served <= UNTIMED_REQUESTS and not self._waiting:
            return True
        if self.has_time():
            return True
        self.wait_for(connection)
        return False

    def after_arrivals(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the requests that have arrived by now are served.

        The loop may run the first `call_soon` before it reads from the sockets. It runs the second
        one after that.
        """
        self._loop.call_soon(self._loop.call_soon, self._after_waiting, callback)

    def _after_waiting(self, callback: Callable[[], None]) -> None:
        if self._waiting:
            self.wait(callback)
        else:
            callback()

    def _next_turn(self) -> None:
        self._served = 0
        super()._next_turn()
