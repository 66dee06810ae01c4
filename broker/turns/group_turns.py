"""Limits how long one turn of the event loop serves the requests of group members.

A thousand members that learn of a rebalance send their next requests at once. Served in one turn of
the loop, they would delay a producer by 50 ms and more. So each turn serves them for one
millisecond; the others stay in their connections' buffers. The next turn begins with those that
have waited longest, then serves what else has arrived. The members lose nothing: each would have
waited for those before it anyway.

After a stall of the process, heartbeats that came in time are still in the sockets:
`after_arrivals` has them served before the group coordinator expires any member.

The loop does not announce its turns. GroupTurns asks to be called in the next one as soon as
several group requests have been served, which is not worth it for a single heartbeat.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from odradek.protocol.api_keys import ApiKey

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


class TurnTaker(Protocol):
    """A connection whose next request is one of GROUP_APIS."""

    def take_turn(self) -> None:
        """Called when the request that had to wait may be served."""


class GroupTurns:
    """The time that is left in this turn, and the connections that wait for a later one."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._served = 0
        self._until = 0.0
        self._is_scheduled = False
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_entitled = False  # whether the connection that asks next has already waited

    def has_room_for(self, connection: TurnTaker) -> bool:
        """Whether the connection may be served this turn. If not, `take_turn` is called later."""
        self._served += 1
        if self._is_entitled:
            self._is_entitled = False
            return True
        if self._served <= UNTIMED_REQUESTS and not self._waiting:
            return True
        now = self._clock()
        if not self._is_scheduled:
            self._until = now + TURN_S
            self._schedule()
        if now < self._until:
            return True
        self._waiting.append(connection.take_turn)
        return False

    def after_arrivals(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the requests that have arrived by now are served.

        The loop may run the first `call_soon` before it reads from the sockets. It runs the second
        one after that.
        """
        self._loop.call_soon(self._loop.call_soon, self._after_waiting, callback)

    def _after_waiting(self, callback: Callable[[], None]) -> None:
        if self._waiting:
            self._waiting.append(callback)
        else:
            callback()

    def _schedule(self) -> None:
        self._is_scheduled = True
        self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._is_scheduled = False
        self._served = 0
        if not self._waiting:
            return
        now = self._clock()
        self._until = now + TURN_S
        self._schedule()
        for _ in range(len(self._waiting)):
            self._is_entitled = True
            self._waiting.popleft()()
            self._is_entitled = False
            if self._clock() >= self._until:
                break
