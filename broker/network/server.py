"""Accepts connections on the listening sockets, and closes those that break a limit."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from operator import attrgetter

from odradek.broker.broker import Broker
from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.security.session import Session
from odradek.config.broker_config import BrokerConfig
from odradek.config.listeners import Listener

from .acceptor import Acceptor
from .answer_sender import SenderSupport
from .connection import Connection, ConnectionSupport
from .connection_limits import ConnectionLimits
from .frame_memory import FrameMemory
from .listeners import BoundListener
from .output import PlainOutput
from .receive_buffer import SHARED_BYTES
from .tls_handshakes import Handshakes
from .tls_transport import output_of

STALLED_FRAME_MS = 30_000
SWEEP_EVERY_S = 0.5
# How long the current requests may take when the broker stops.
DRAIN_S = 10.0


class Server:
    """Accepts connections; closes those that stall, are idle too long, or exceed a limit.

    `opened_count`: how many connections there were, the open ones included.
    """

    def __init__(
        self,
        broker: Broker,
        bound: Iterable[BoundListener],
        dispatcher: Dispatcher,
    ) -> None:
        """Listen on the bound ports and accept connections. Raises OSError."""
        self.connections: set[Connection] = set()
        # Called for each connection that closes before the broker stops.
        self.on_disconnect: list[Callable[[Session], object]] = []
        self.opened_count = 0
        self._is_finishing = False
        self._broker = broker
        self._loop = broker.loop
        self._frame_memory = FrameMemory(self._loop, broker.config.queued_bytes_limit)
        self._support = ConnectionSupport(
            loop=self._loop,
            timer_ms=broker.clock.timer_ms,
            max_request_bytes=broker.config.socket_request_max_bytes,
            dispatcher=dispatcher,
            frame_memory=self._frame_memory,
            group_turns=broker.turns.group,
            large_turns=broker.turns.large,
            sender=SenderSupport(
                loop=self._loop,
                timer_ms=broker.clock.timer_ms,
                send_turns=broker.turns.send,
                files=broker.log_manager.files,
                disk=broker.disk,
            ),
            receive_view=memoryview(bytearray(SHARED_BYTES)),
            opened=self._opened,
            closed=self._closed,
        )
        self._handshakes = Handshakes(self._loop)
        self._limits = ConnectionLimits(broker.config, broker.quotas, broker.quotas.addresses)
        broker.effective_config.on_change.append(self._update_limits)
        self._all_closed = asyncio.Event()
        self._acceptors = [
            self._accept(item.listener, sock) for item in bound for sock in item.sockets
        ]
        self._sweeper = self._loop.call_later(SWEEP_EVERY_S, self._sweep)

    def _accept(self, listener: Listener, sock: socket.socket) -> Acceptor[Connection]:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)  # accepted sockets inherit it
        self._set_buffer_sizes(sock)
        backlog = self._broker.config.socket_listen_backlog_size
        limits = self._limits.of_listener(listener.name)
        if not listener.security_protocol.uses_tls:
            make_connection = partial(Connection, self._support, listener, self._open_output)
            return Acceptor(self._loop, sock, make_connection, backlog, limits)
        make_connection = partial(Connection, self._support, listener, output_of)
        set_up = partial(self._connect_tls, listener)
        return Acceptor(self._loop, sock, make_connection, backlog, limits, set_up)

    def _open_output(self, transport: asyncio.BaseTransport) -> PlainOutput:
        if "socket.send.buffer.bytes" in self._broker.config.texts:
            return PlainOutput(transport, local_send_bytes=None)
        return PlainOutput(transport)

    async def _connect_tls(
        self, listener: Listener, connection: Connection, client: socket.socket
    ) -> None:
        assert self._broker.security.tls is not None
        self._handshakes.begin(client, connection, self._broker.security.tls.of(listener.name))

    def _set_buffer_sizes(self, sock: socket.socket) -> None:
        """Set the buffer sizes of accepted sockets, where they are configured.

        Kafka's default of 100 KiB is not applied: it would switch off the system's own tuning.
        """
        for key, option in (
            ("socket.send.buffer.bytes", socket.SO_SNDBUF),
            ("socket.receive.buffer.bytes", socket.SO_RCVBUF),
        ):
            size_bytes = int(self._broker.config.texts.get(key, -1))
            if size_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size_bytes)

    # -- connections ------------------------------------------------------------------------------

    def _opened(self, connection: Connection) -> None:
        """Count a new connection. If there are too many, close those least recently used."""
        self._all_closed.clear()
        self.connections.add(connection)
        self.opened_count += 1
        self._broker.security.logins.begin(connection.session)
        if self._is_finishing:  # it was being set up
            connection.finish()
        self._close_excess()

    def _closed(self, connection: Connection) -> None:
        """Forget a connection, which may have failed before it was opened."""
        self._limits.closed(connection)
        if connection not in self.connections:
            return
        self.connections.discard(connection)
        self._frame_memory.forget(connection)
        if not self.connections:
            self._all_closed.set()
        for call in self.on_disconnect:
            call(connection.session)

    def _update_limits(self, config: BrokerConfig) -> None:
        self._limits.update(config)
        self._close_excess()

    def _close_excess(self) -> None:
        excess = self._limits.excess()
        if not excess:
            return
        unprotected = (
            each
            for each in self.connections
            if not self._limits.is_protected(each.session.listener.name)
        )
        for connection in sorted(unprotected, key=attrgetter("last_active_ms"))[:excess]:
            connection.close("there are too many connections (max.connections)")

    def _sweep(self) -> None:
        """Close the connections that have stalled or have been idle too long."""
        self._sweeper = self._loop.call_later(SWEEP_EVERY_S, self._sweep)
        self._frame_memory.check_progress()
        timer_ms = self._broker.clock.timer_ms()
        shortest_ms = STALLED_FRAME_MS
        max_idle_ms = self._broker.config.connections_max_idle_ms
        if max_idle_ms >= 0:
            shortest_ms = min(shortest_ms, max_idle_ms // 2)
        for connection in list(self.connections):
            idle_ms = timer_ms - connection.last_active_ms
            if idle_ms >= shortest_ms:
                connection.shrink()  # its buffer was kept for the next large request
                self._close_if_stalled(connection, idle_ms, max_idle_ms)

    def _close_if_stalled(self, connection: Connection, idle_ms: int, max_idle_ms: int) -> None:
        if connection.is_unread:
            connection.note_reading()
            idle_ms = self._broker.clock.timer_ms() - connection.last_active_ms
        partial = connection.partial_frame
        if partial is not None and self._has_stalled(connection, idle_ms):
            have, announced = partial
            connection.close(f"its request of {announced} bytes stopped at {have} for {idle_ms} ms")
        elif 0 <= max_idle_ms < idle_ms:
            if connection.is_unread:  # it may hold files that were deleted
                connection.close(f"it has not read its answer for {idle_ms} ms")
            elif not connection.busy or connection.throttled_ms:  # Kafka does not wait, either
                connection.close(None)

    def _has_stalled(self, connection: Connection, idle_ms: int) -> bool:
        """Whether a partly received frame has made no progress for too long."""
        # A connection that waits for memory cannot make progress.
        return idle_ms >= STALLED_FRAME_MS and not connection.waits_for_memory

    # -- stopping ---------------------------------------------------------------------------------

    def finish(self) -> None:
        """Stop accepting. Each connection closes once its current request is answered."""
        self._stop_accepting()
        for connection in list(self.connections):
            connection.finish()

    def abort(self) -> None:
        """Stop as a process that is killed: close all connections, and answer nothing."""
        self._stop_accepting()
        for connection in list(self.connections):
            connection.abort()
        self._handshakes.close()

    def _stop_accepting(self) -> None:
        self.on_disconnect.clear()
        self._is_finishing = True
        for acceptor in self._acceptors:
            acceptor.close()
        self._sweeper.cancel()
        with suppress(ValueError):  # it has stopped before
            self._broker.effective_config.on_change.remove(self._update_limits)

    async def drain(self) -> None:
        """Wait until every connection is closed. After DRAIN_S, close those that are left."""
        if self.connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_closed.wait(), DRAIN_S)
        for connection in list(self.connections):
            connection.close("the broker stops before the answer was sent")
        self._handshakes.close()
