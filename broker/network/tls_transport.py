"""TLS for a connection: OpenSSL works on the socket itself, and the event loop only watches it.

Why not the event loop's own TLS: its handshakes run on the loop, where an RSA signature stops every
client for half a millisecond. Why not ssl.MemoryBIO: it costs as much CPU, and each connection
keeps buffers of encrypted bytes. docs/decisions.md has the figures.

OpenSSL holds at most one record (16 KiB) of a connection. The bytes of a file that the client does
not take are not kept: they are read and encrypted again, as OpenSSL requires, when the socket takes
bytes. So a stalled consumer costs as little memory as without TLS.

Encrypting takes the loop's time, unlike sendfile. So a connection that sends or receives much gives
way to the others after TURN_BYTES, and one that receives many small records after TURN_RECORDS.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress

from odradek.storage.files import OpenFile
from odradek.storage.positioned import preadv

from .output import wire_bytes_of

logger = logging.getLogger("odradek.connection")

CHUNK_BYTES = 64 * 1024
TURN_BYTES = 512 * 1024
# A record takes 3.5 us, also if it holds one byte.
TURN_RECORDS = 256
# How soon a read is tried again that must first write, while the client does not read.
BLOCKED_READ_S = 0.05


class TlsOutput:
    """The sending side of a TLS connection. `chunk` is a buffer that all connections share.

    `encrypts`: from the end of the handshake until the connection closes. Outside of that time
    an SSLSocket of Python would send the bytes as they are.
    """

    def __init__(self, sock: socket.socket, chunk: memoryview) -> None:
        self.socket = sock  # an SSLSocket once the handshake is complete
        self.encrypts = False
        self._chunk = chunk

    def send(self, data: bytes | bytearray | memoryview, _flags: int = 0, /) -> int:
        if not self.encrypts:
            raise BrokenPipeError("TLS has ended")
        try:
            return self.socket.send(data)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            raise BlockingIOError from None
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError) as error:
            raise BrokenPipeError(f"TLS has ended: {error}") from error

    def send_file(self, file: OpenFile, position: int, count: int) -> int:
        sent = 0
        count = min(count, TURN_BYTES)
        while sent < count:
            chunk = self._chunk[: min(count - sent, CHUNK_BYTES)]
            size = preadv(file.fd, [chunk], position + sent)
            try:
                sent += self.send(chunk[:size]) if size else 0
            except BlockingIOError:
                if not sent:
                    raise
                return sent
            if size < len(chunk):
                break
        return sent

    def wire_bytes(self) -> tuple[int, int] | None:
        return wire_bytes_of(self.socket)

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()


class TlsTransport(asyncio.Transport):
    """The receiving side of a TLS connection, and its end.

    `protocol` receives nothing until `begin_reading` is called with the socket after its handshake.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        protocol: asyncio.BufferedProtocol,
        chunk: memoryview,
    ) -> None:
        """Raises OSError if the client has already gone."""
        addresses = {"peername": sock.getpeername(), "sockname": sock.getsockname()}
        super().__init__({"socket": sock, **addresses})
        self.output = TlsOutput(sock, chunk)
        self._loop = loop
        self._protocol = protocol
        self._socket: ssl.SSLSocket | None = None
        self._is_closing = False
        self._is_paused = False
        self._has_ended = False  # whether the client has sent its last byte
        self._error: OSError | None = None  # with which it has ended: a reset, broken TLS
        self._is_lent = False
        self._left_records = 0  # in this turn

    # -- the handshake ----------------------------------------------------------------------------

    def wait_readable(self, callback: Callable[[], object]) -> None:
        """Call `callback` whenever there is something to read; another call replaces it."""
        self._loop.add_reader(self.output.fileno(), callback)

    def wait_writable(self, callback: Callable[[], object]) -> None:
        """Call `callback` whenever the socket takes bytes, until `lend`."""
        self._loop.add_writer(self.output.fileno(), callback)

    def lend(self) -> socket.socket:
        """Leave the socket to a thread; it stays open until it is given back."""
        self._unwatch()
        self._is_lent = True
        return self.output.socket

    def take_back(self, sock: socket.socket) -> bool:
        """Get the socket back, or its successor. Returns False if the connection is closing."""
        self._is_lent = False
        self.output.socket = sock
        if self._is_closing:
            self._loop.call_soon(self._report_loss)
        return not self._is_closing

    def begin_reading(self, sock: ssl.SSLSocket) -> None:
        """Pass what the client sends from now on to the protocol."""
        self._socket = sock
        self.output.encrypts = True
        self._watch()

    # -- reading ----------------------------------------------------------------------------------

    def pause_reading(self) -> None:
        self._is_paused = True
        self._unwatch()

    def resume_reading(self) -> None:
        self._is_paused = False
        self._watch()
        self._loop.call_soon(self._read)  # a part of a record may be left in OpenSSL

    def _watch(self) -> None:
        if self._may_read():
            self._loop.add_reader(self.output.fileno(), self._read)

    def _unwatch(self) -> None:
        if not self._is_lent and self.output.fileno() >= 0:
            self._loop.remove_reader(self.output.fileno())
            if self._socket is None:  # later the protocol waits until it can write
                self._loop.remove_writer(self.output.fileno())

    def _read(self) -> None:
        """Receive until there is nothing left, or this connection has had its turn."""
        assert self._socket is not None
        left_bytes, self._left_records = TURN_BYTES, TURN_RECORDS
        while left_bytes > 0 and self._left_records and self._may_read():
            view = self._protocol.get_buffer(-1)
            assert isinstance(view, memoryview)
            received = self._receive_into(self._socket, view)
            if received:
                self._protocol.buffer_updated(received)
                left_bytes -= received
            if self._has_ended:
                self._end()
            if not received or (received < len(view) and self._left_records):
                return
        if self._may_read():
            self._unwatch()  # libuv stops to watch a socket that has been reset
            self._watch()
            if self._socket.pending():
                self._loop.call_soon(self._read)

    def _may_read(self) -> bool:
        return not (self._is_paused or self._is_closing or self._has_ended)

    def _end(self) -> None:
        """Close, unless the protocol still serves what the client has sent."""
        self._unwatch()
        if self._error is not None:
            if isinstance(self._error, ssl.SSLError) and not self._is_closing:
                peer = self.get_extra_info("peername")
                reason = self._error.reason or self._error
                logger.warning("closed %s:%d: broken TLS: %s", *peer[:2], reason)
            self.abort()
        elif not self._protocol.eof_received():
            self.close()

    def _receive_into(self, sock: ssl.SSLSocket, view: memoryview) -> int:
        """Fill the view with what has arrived; one call of OpenSSL returns one record at most."""
        received = 0
        try:
            while received < len(view) and self._left_records and not self._has_ended:
                self._left_records -= 1
                count = sock.recv_into(view[received:])
                received += count
                self._has_ended = not count
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLWantWriteError:
            # OpenSSL has to answer a KeyUpdate, and the socket's buffer is full.
            self._unwatch()
            self._loop.call_later(BLOCKED_READ_S, self._watch)
        except OSError as error:  # what was received before it is served
            self._error = error
            self._has_ended = True
        return received

    # -- the end ----------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        """Close, and tell the client that nothing was cut off."""
        if not self._is_closing and self._socket is not None:
            with suppress(OSError, ValueError):  # it does not wait for the client's own message
                self._socket.unwrap()
        self.abort()

    def abort(self) -> None:
        if self._is_closing:
            return
        self._unwatch()
        self._is_closing = True
        self.output.encrypts = False
        if not self._is_lent:
            self._loop.call_soon(self._report_loss)

    def _report_loss(self) -> None:
        self._protocol.connection_lost(self._error)


def output_of(transport: asyncio.BaseTransport) -> TlsOutput:
    """The sending side of the same connection."""
    assert isinstance(transport, TlsTransport)
    return transport.output
