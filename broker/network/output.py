"""The sending side of a connection: bytes and parts of log files, to a socket or through TLS."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
from contextlib import suppress
from typing import Protocol

from odradek.storage.files import OpenFile
from odradek.storage.positioned import pread

# A read of a file that cannot be sent by the system.
READ_BYTES = 256 * 1024

try:
    import fcntl
    import termios
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]  # None takes the place of the module

# SO_SNDBUF of a connection from this machine. The system's own tuning grows the buffer to
# megabytes. The client then copies faster than the broker sends, sleeps after each packet, and the
# broker pays for waking it. With a small buffer the broker waits, and the client reads on.
# A client with a small receive window, as Java's consumer has by default, is left to the system: it
# cannot be flooded, and a large buffer takes its answer at once, so that the broker need not wait.
LOCAL_SEND_BYTES = 256 * 1024
# Of Linux's struct tcp_info: tcpi_bytes_acked and tcpi_bytes_received.
_ACKED_AND_RECEIVED = struct.Struct("=120xQQ")


class Output(Protocol):
    """Where a connection writes its answers. It never waits.

    Both `send` methods return how many bytes were taken. They raise BlockingIOError if none can be
    taken now: call again with the same bytes once the descriptor is writable.
    """

    def send(self, data: bytes | bytearray | memoryview, flags: int = 0, /) -> int: ...

    def send_file(self, file: OpenFile, position: int, count: int) -> int:
        """Send bytes of a file. Returns 0 if the file ends before `position`.

        If it took fewer than `count`, wait until the descriptor is writable.
        """

    def wire_bytes(self) -> tuple[int, int] | None:
        """See `wire_bytes_of`."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class PlainOutput(socket.socket):
    """A duplicate of a transport's descriptor: uvloop forbids writing to its own."""

    __slots__ = ()

    def __init__(
        self, transport: asyncio.BaseTransport, local_send_bytes: int | None = LOCAL_SEND_BYTES
    ) -> None:
        """`local_send_bytes`: SO_SNDBUF if the client is on this machine; None: leave it as it is.

        Raises OSError if there is no descriptor left.
        """
        super().__init__(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        peer, own = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        is_local = peer and own and peer[0] == own[0]
        if local_send_bytes is not None and is_local and largest_window(self) > local_send_bytes:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, local_send_bytes)

    def send_file(self, file: OpenFile, position: int, count: int) -> int:
        return os.sendfile(self.fileno(), file.fd, position, count)

    def copy_file(self, file: OpenFile, position: int, count: int) -> int:
        """Like `send_file`, through memory."""
        data = pread(file.fd, min(count, READ_BYTES), position)
        return self.send(data) if data else 0

    if not hasattr(os, "sendfile"):  # Windows
        send_file = copy_file

    def wire_bytes(self) -> tuple[int, int] | None:
        return wire_bytes_of(self)


def queued_bytes(descriptor: int) -> int:
    """How many bytes a socket's peer has not acknowledged; 0 if the system does not tell."""
    queued = bytearray(4)
    if termios is not None:
        with suppress(OSError):  # no socket of the system
            fcntl.ioctl(descriptor, termios.TIOCOUTQ, queued)
    return int.from_bytes(queued, sys.byteorder)


def wire_bytes_of(client: socket.socket) -> tuple[int, int] | None:
    """The bytes that were received from the client, and those that it has acknowledged.

    None without Linux's TCP_INFO, or on a socket that is not TCP. Asking takes a microsecond.
    """
    if sys.platform != "linux" or client.family == socket.AF_UNIX:
        return None
    try:
        found = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKED_AND_RECEIVED.size)
        acked, received = _ACKED_AND_RECEIVED.unpack(found)
    except (OSError, struct.error):  # it is closed, or the system is older than Linux 4.1
        return None
    return received, acked


def largest_window(client: socket.socket) -> int:
    """The largest receive window, in bytes, that the client can announce (RFC 7323).

    Without Linux's TCP_INFO, or on a socket that is not TCP, it is taken for unlimited.
    """
    if sys.platform != "linux" or client.family == socket.AF_UNIX:
        return sys.maxsize
    scales = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 7)[6]  # both, 4 bits each
    return 0xFFFF << (scales & 0xF if sys.byteorder == "little" else scales >> 4)
