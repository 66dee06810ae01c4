"""The sending side of a connection: bytes and parts of log files, to a socket or through TLS."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Protocol

from odradek.storage.files import OpenFile


class Output(Protocol):
    """Where a connection writes its answers. It never waits.

    Both `send` methods return how many bytes were taken. They raise BlockingIOError if none can be
    taken now: call again with the same bytes once the descriptor is writable.
    """

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0, /) -> int: ...

    def send_file(self, file: OpenFile, position: int, count: int) -> int:
        """Send bytes of a file. Returns 0 if the file ends before `position`."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class PlainOutput(socket.socket):
    """A duplicate of a transport's descriptor: uvloop forbids writing to its own."""

    __slots__ = ()

    def __init__(self, transport: asyncio.BaseTransport) -> None:
        """Raises OSError if there is no descriptor left."""
        super().__init__(fileno=os.dup(transport.get_extra_info("socket").fileno()))

    def send_file(self, file: OpenFile, position: int, count: int) -> int:
        return os.sendfile(self.fileno(), file.fd, position, count)
