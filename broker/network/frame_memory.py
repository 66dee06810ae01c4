"""Limits the memory of partly received requests, over all connections.

A frame of up to 2 MiB never waits, because clients send larger ones only if configured to. A larger
frame is received only after all the memory that it announced has been granted. Until then its
connection is paused and queued. All of the frame is granted at once, because two frames that each
hold half of what they need would wait for each other forever. The memory itself is allocated as
bytes arrive. So 100 clients that announce 50 MB each cost at most the limit, and the requests of
other clients are served meanwhile.

The limit is `queued.max.request.bytes`. A frame that is larger than the whole limit is granted when
no other frame holds a grant. A frame that fits into what is left is granted at once, even if larger
frames are queued: they may have to wait longer for that. A connection that holds a grant and sends
nothing, while others wait, is closed by the server's periodic check (Server._sweep).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

NEVER_WAITS_BYTES = 2 * 1024 * 1024


class FrameOwner(Protocol):
    """A connection that receives frames."""

    def on_memory_released(self) -> None:
        """Called when memory has been released: call `FrameMemory.try_grant` again."""


class FrameMemory:
    """The memory granted to large frames. If `limit_bytes` is None, everything is granted."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_bytes: int | None) -> None:
        self.granted_bytes = 0  # the total size of the frames that hold a grant
        self._loop = loop
        self._limit_bytes = limit_bytes
        self._granted: dict[FrameOwner, int] = {}
        self._queue: deque[FrameOwner] = deque()

    @property
    def has_waiting(self) -> bool:
        """Whether a connection waits for memory."""
        return bool(self._queue)

    def holds_grant(self, owner: FrameOwner) -> bool:
        """Whether the connection has been granted memory for a large frame."""
        return owner in self._granted

    def try_grant(self, owner: FrameOwner, frame_bytes: int) -> bool:
        """Grant memory for a frame, or queue the owner. Returns whether the memory is granted.

        `on_memory_released` of a queued owner is called later. A grant lasts until `release`.
        """
        if frame_bytes <= NEVER_WAITS_BYTES or self._limit_bytes is None:
            return True
        own_bytes = self._granted.get(owner, 0)
        if frame_bytes <= own_bytes:
            return True
        of_others_bytes = self.granted_bytes - own_bytes
        if not of_others_bytes or of_others_bytes + frame_bytes <= self._limit_bytes:
            self._granted[owner] = frame_bytes
            self.granted_bytes = of_others_bytes + frame_bytes
            return True
        if owner not in self._queue:
            self._queue.append(owner)
        return False

    def release(self, owner: FrameOwner) -> None:
        """Take back the grant of a connection that has freed its large buffer."""
        self.granted_bytes -= self._granted.pop(owner, 0)
        if self._queue:
            self._loop.call_soon(self._wake_next)

    def forget(self, owner: FrameOwner) -> None:
        """Remove a closed connection: its grant and its place in the queue."""
        if owner in self._queue:
            self._queue.remove(owner)
        self.release(owner)

    def _wake_next(self) -> None:
        """Let queued connections try again, in order, until one has to keep waiting."""
        for _ in range(len(self._queue)):
            owner = self._queue.popleft()
            owner.on_memory_released()
            if owner in self._queue:
                self._queue.remove(owner)
                self._queue.appendleft(owner)
                return
