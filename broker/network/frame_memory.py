"""How much memory the frames under way may take, over all connections.

A frame of up to 2 MiB never waits: that is more than clients send unless told to. A larger one is
received only after it has been granted all the memory it announced, out of
`queued.max.request.bytes`; until then its connection is paused and queued. (All of it at once: two
frames that each had half of what they need would wait for each other for ever.) The memory itself
is still taken as bytes arrive. So 100 clients that announce 50 MB each cost what the limit says,
and everybody else's requests go on.

Who holds a grant without sending, while others wait for it, is closed by the server's sweep.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from .connection import Connection

NEVER_WAITS_BYTES = 2 * 1024 * 1024


class FrameMemory:
    """The account of large frames; without a limit (None) everybody may grow."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit_bytes: int | None) -> None:
        self._loop = loop
        self._limit_bytes = limit_bytes
        self._granted: dict[Connection, int] = {}
        self._granted_bytes = 0
        self._queue: deque[Connection] = deque()

    @property
    def granted_bytes(self) -> int:
        """What all large frames may take together."""
        return self._granted_bytes

    @property
    def is_short(self) -> bool:
        """Whether some connection waits for memory."""
        return bool(self._queue)

    def holds_grant(self, connection: Connection) -> bool:
        """Whether the connection has been granted memory for a large frame."""
        return connection in self._granted

    def grants(self, connection: Connection, frame_bytes: int) -> bool:
        """Whether a frame may be received; if not, the connection is called when it may try again.

        What is granted stays so until `release`.
        """
        if frame_bytes <= NEVER_WAITS_BYTES or self._limit_bytes is None:
            return True
        more_bytes = frame_bytes - self._granted.get(connection, 0)
        if more_bytes <= 0:
            return True
        if self._granted_bytes + more_bytes <= self._limit_bytes:
            self._granted[connection] = frame_bytes
            self._granted_bytes += more_bytes
            return True
        if connection not in self._queue:
            self._queue.append(connection)
        return False

    def release(self, connection: Connection) -> None:
        """The connection has given its large buffer back."""
        self._granted_bytes -= self._granted.pop(connection, 0)
        if self._queue:
            self._loop.call_soon(self._wake_next)

    def forget(self, connection: Connection) -> None:
        """The connection is gone, whatever it held or waited for."""
        if connection in self._queue:
            self._queue.remove(connection)
        self.release(connection)

    def _wake_next(self) -> None:
        """Let those that wait try again, in order, until one must go on waiting."""
        for _ in range(len(self._queue)):
            connection = self._queue.popleft()
            connection.memory_is_free()
            if connection in self._queue:
                self._queue.remove(connection)
                self._queue.appendleft(connection)
                return
