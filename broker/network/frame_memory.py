"""Limits the memory of partly received requests, over all connections.

A frame of up to 2 MiB never waits, because clients send larger ones only if configured to. A larger
frame is received only after all the memory that it announced has been granted. Until then its
connection is paused and queued. All of the frame is granted at once, because two frames that each
hold half of what they need would wait for each other forever. The memory itself is taken as bytes
arrive. So 100 clients that announce 50 MB each cost at most the limit, and the requests of other
clients are served meanwhile.

The limit is `queued.max.request.bytes`. A frame that is larger than the whole limit is granted when
no other frame holds a grant. A frame that fits into what is left is granted at once, even if larger
frames are queued. The first in the queue is overtaken in this way by as many bytes as the limit,
and then by none until it has its grant.

While others wait, a frame must arrive in 30 seconds: in every CHECKS calls of `check_progress` a
PARTS-th of it. Otherwise its connection is closed. Without this, a few clients that send a byte now
and then would hold all of the memory. Calls are counted, and not seconds, because after a stall of
the process the bytes have arrived and are not read yet. A grant ends when the request is answered.
While others wait, the grant of a request that takes long, as a Fetch may, ends before.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Protocol

NEVER_WAITS_BYTES = 2 * 1024 * 1024
# The server calls `check_progress` twice a second.
CHECKS = 5
PARTS = 12


class FrameOwner(Protocol):
    """A connection that receives frames."""

    @property
    def partial_frame(self) -> tuple[int, int] | None:
        """Bytes received and bytes announced of a partly received frame, or None without one."""

    def on_memory_released(self) -> None:
        """Called when memory has been released: call `FrameMemory.try_grant` again."""

    def close(self, reason: str | None) -> None:
        """Close the connection; a `reason` is logged."""


@dataclass(slots=True)
class Grant:
    """The memory of one frame, and how much of it had arrived `checks` checks ago."""

    frame_bytes: int
    received_bytes: int = 0
    checks: int = 0


class FrameMemory:
    """The memory granted to large frames. If `limit_bytes` is None, everything is granted."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_bytes: int | None) -> None:
        self.granted_bytes = 0  # the total size of the frames that hold a grant
        self._loop = loop
        self._limit_bytes = limit_bytes
        self._granted: dict[FrameOwner, Grant] = {}
        self._queue: deque[FrameOwner] = deque()
        self._overtaken_bytes = 0  # granted to others since the first in the queue is the first

    def try_grant(self, owner: FrameOwner, frame_bytes: int) -> bool:
        """Grant memory for a frame, or queue the owner. Returns whether the memory is granted.

        `on_memory_released` of a queued owner is called later. A grant lasts until `release`.
        """
        if frame_bytes <= NEVER_WAITS_BYTES or self._limit_bytes is None:
            return True
        fits = not self.granted_bytes or self.granted_bytes + frame_bytes <= self._limit_bytes
        is_first = not self._queue or self._queue[0] is owner
        overtaken_bytes = 0 if is_first else self._overtaken_bytes + frame_bytes
        if not fits or overtaken_bytes > self._limit_bytes:
            if owner not in self._queue:
                self._queue.append(owner)
            return False
        self._overtaken_bytes = overtaken_bytes
        self._granted[owner] = Grant(frame_bytes)
        self.granted_bytes += frame_bytes
        if owner in self._queue:
            self._queue.remove(owner)
            self._loop.call_soon(self._wake_first)
        return True

    def release(self, owner: FrameOwner) -> None:
        """Take back the grant of a connection, if it has one."""
        grant = self._granted.pop(owner, None)
        if grant is not None:
            self.granted_bytes -= grant.frame_bytes
        self._loop.call_soon(self._wake_first)

    def forget(self, owner: FrameOwner) -> None:
        """Remove a closed connection: its grant and its place in the queue."""
        if owner in self._queue:
            if owner is self._queue[0]:
                self._overtaken_bytes = 0
            self._queue.remove(owner)
        self.release(owner)

    def check_progress(self) -> None:
        """Close connections whose frames arrive too slowly while others wait."""
        for owner, grant in list(self._granted.items()):
            partial = owner.partial_frame
            received_bytes = partial[0] if partial else grant.frame_bytes
            grant.checks += 1
            if not self._queue:
                grant.received_bytes, grant.checks = received_bytes, 0
            elif grant.checks == CHECKS:
                self._judge(owner, grant, received_bytes)

    def _judge(self, owner: FrameOwner, grant: Grant, received_bytes: int) -> None:
        if received_bytes == grant.frame_bytes:
            self.release(owner)
        elif (received_bytes - grant.received_bytes) * PARTS < grant.frame_bytes:
            owner.close(
                f"its request of {grant.frame_bytes} bytes arrives too slowly:"
                f" {received_bytes} are there, and others wait for memory"
            )
        else:
            grant.received_bytes, grant.checks = received_bytes, 0

    def _wake_first(self) -> None:
        """Let the first in the queue try again. If it gets a grant, the next one tries."""
        if self._queue:
            self._queue[0].on_memory_released()
