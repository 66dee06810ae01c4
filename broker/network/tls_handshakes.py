"""TLS handshakes: they run in threads, and what is unfinished is limited in number and in time.

A handshake costs 0.2 to 1 ms of CPU, nearly all of it outside of the GIL. So each step of it, from
the client's bytes to the answer, runs in a thread, and the event loop waits for the bytes. There
are few threads, and they run little Python: one that holds the GIL while it waits for a processor
stops the loop.

A connection takes part in all limits of the server as soon as it is accepted. Until its first
bytes have arrived it has no memory in OpenSSL. When too many handshakes are unfinished, the one
that has waited longest for its client ends, so clients that answer are served in a flood of
clients that do not.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from odradek.broker.security.principal import Principal, RefusedClientError
from odradek.config.listeners import SecurityProtocol
from odradek.protocol.framing import TLS_HANDSHAKE, describe_not_tls
from odradek.storage.process_limits import descriptor_limits

from .connection import Connection
from .tls_transport import CHUNK_BYTES, TlsTransport

logger = logging.getLogger("odradek.connection")

THREADS = max(1, min(3, (os.cpu_count() or 1) // 2))
# A handshake may take this long in all.
HANDSHAKE_S = 10.0
CHECK_EVERY_S = 1.0
MAX_UNFINISHED = 500
# Unfinished handshakes use at most one in so many of the file descriptors.
DESCRIPTORS_SHARE = 4
PEEKED_BYTES = 16


class Tls(Protocol):
    """The certificates and rules of a listener, as they are now."""

    @property
    def context(self) -> ssl.SSLContext: ...

    def check(self, sock: ssl.SSLSocket) -> Principal:
        """Who the client is. Called in a thread. Raises RefusedClientError, ssl.SSLError."""


class Handshakes:
    """The unfinished handshakes of all listeners, and the threads that they run in."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.chunk = memoryview(bytearray(CHUNK_BYTES))
        self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="tls-handshake")
        descriptors, _ = descriptor_limits()
        self.limit = min(MAX_UNFINISHED, max(descriptors // DESCRIPTORS_SHARE, 1))
        # Each with its deadline on the loop's clock. Of those that wait for their clients, the one
        # that has waited longest is first.
        self._unfinished: dict[Handshake, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Stop the threads; the connections are closed by the server."""
        if self._timer is not None:
            self._timer.cancel()
        self.pool.shutdown(wait=True)

    def begin(self, sock: socket.socket, connection: Connection, tls: Tls) -> None:
        """Set up an accepted connection. Raises OSError if the client has already gone."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = TlsTransport(self.loop, sock, connection, self.chunk)
        connection.connection_made(transport)
        if transport.is_closing():
            return  # there are too many connections
        handshake = Handshake(self, transport, connection, tls)
        self._unfinished[handshake] = self.loop.time() + HANDSHAKE_S
        if len(self._unfinished) > self.limit:
            self._end_oldest()
        if self._timer is None:
            self._timer = self.loop.call_later(CHECK_EVERY_S, self._tick)

    def forget(self, handshake: Handshake) -> None:
        """Forget a handshake that is complete or has failed."""
        self._unfinished.pop(handshake, None)

    def note_progress(self, handshake: Handshake) -> None:
        """Note that a handshake waits for its client's next bytes from now on."""
        deadline = self._unfinished.pop(handshake, None)
        if deadline is not None:
            self._unfinished[handshake] = deadline

    def _end_oldest(self) -> None:
        for handshake in self._unfinished:
            if handshake.waits_for_client:
                handshake.fail(f"there are {self.limit} unfinished TLS handshakes")
                return

    def _tick(self) -> None:
        """End the handshakes that take too long."""
        now = self.loop.time()
        late = [each for each, deadline in self._unfinished.items() if deadline <= now]
        for handshake in late:
            handshake.fail(f"its TLS handshake was not complete after {HANDSHAKE_S:g} s")
        self._timer = None
        if self._unfinished:
            self._timer = self.loop.call_later(CHECK_EVERY_S, self._tick)


class Handshake:
    """One connection's handshake: waits for its client's bytes, and steps in a thread."""

    def __init__(
        self, owner: Handshakes, transport: TlsTransport, connection: Connection, tls: Tls
    ) -> None:
        self.waits_for_client = True
        self._owner = owner
        self._transport = transport
        self._connection = connection
        self._tls = tls
        self._socket: ssl.SSLSocket | None = None
        transport.wait_readable(self._hello_arrives)

    def _hello_arrives(self) -> None:
        """Look at the client's first bytes before OpenSSL does: other protocols are named."""
        try:
            first = self._transport.output.socket.recv(PEEKED_BYTES, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            first = b""
        if not first:
            self.fail(None)
        elif first[0] != TLS_HANDSHAKE:
            self.fail(describe_not_tls(first))
        else:
            self._open_tls()

    def _open_tls(self) -> None:
        sock = self._transport.lend()
        try:
            self._socket = self._tls.context.wrap_socket(
                sock, server_side=True, do_handshake_on_connect=False
            )
        except OSError:
            self._transport.take_back(sock)
            self.fail(None)
        else:
            self._step_in_thread(self._socket)

    def _start_step(self) -> None:
        self._transport.lend()
        assert self._socket is not None
        self._step_in_thread(self._socket)

    def _step_in_thread(self, sock: ssl.SSLSocket) -> None:
        self.waits_for_client = False
        step = self._owner.loop.run_in_executor(self._owner.pool, self._step, sock)
        step.add_done_callback(partial(self._stepped, sock))

    def _step(self, sock: ssl.SSLSocket) -> Principal:
        """Work on what has arrived, in a thread. Returns the client's identity at the end."""
        sock.do_handshake()
        return self._tls.check(sock)

    def _stepped(self, sock: ssl.SSLSocket, step: asyncio.Future[Principal]) -> None:
        if not self._transport.take_back(sock):
            step.exception()  # else asyncio logs it
            self._owner.forget(self)
            return
        try:
            principal = step.result()
        except ssl.SSLWantReadError:
            self._wait(self._transport.wait_readable)
        except ssl.SSLWantWriteError:
            self._wait(self._transport.wait_writable)
        except (OSError, RefusedClientError) as error:
            self.fail(describe_failure(error))
        except Exception as error:  # the root of every handshake
            logger.error("a TLS handshake failed", exc_info=error)
            self.fail("its TLS handshake failed inside the broker")
        else:
            self._owner.forget(self)
            if self._connection.session.listener.security_protocol is SecurityProtocol.SSL:
                self._connection.session.principal = principal
            self._transport.begin_reading(sock)

    def _wait(self, until_ready: Callable[[Callable[[], object]], None]) -> None:
        """Wait for the client, and then do the next step."""
        self.waits_for_client = True
        self._owner.note_progress(self)
        until_ready(self._start_step)

    def fail(self, reason: str | None) -> None:
        """End the connection; a reason is logged."""
        self._owner.forget(self)
        self._connection.close(reason)


def describe_failure(error: Exception) -> str | None:
    """Why a handshake failed, for the log; None if the client has just closed the connection."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"TLS handshake failed: the client's certificate: {error.verify_message}"
        case ssl.SSLEOFError() | ssl.SSLZeroReturnError() | ConnectionError():
            return None
        case ssl.SSLError():
            return f"TLS handshake failed: {_REASONS.get(error.reason, error.reason or error)}"
    return f"TLS handshake failed: {error}"


# OpenSSL's reasons that have a cause which its own name hides.
_REASONS = {
    "UNSUPPORTED_PROTOCOL": "the client has no TLS version of ssl.enabled.protocols",
    "NO_SHARED_CIPHER": "the client has none of the cipher suites (ssl.cipher.suites)",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "the client sent no certificate (ssl.client.auth)",
    "TLSV1_ALERT_UNKNOWN_CA": "the client does not trust the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the client does not accept the broker's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the client does not accept the broker's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the client finds that the broker's certificate has expired",
}
