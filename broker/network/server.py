"""The listening sockets and the connections they accepted."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...config.listeners import Listener
from ..handlers import HANDLERS
from ..requests.dispatch import Dispatcher
from .acceptor import Acceptor
from .connection import START_BYTES, Connection
from .frame_memory import FrameMemory
from .group_turns import GroupTurns

if TYPE_CHECKING:
    from ..broker import Broker

STALLED_FRAME_MS = 30_000
# While others wait for memory, a frame that makes no progress for this long gives its up.
STALLED_UNDER_PRESSURE_MS = 1_000
SWEEP_EVERY_S = 0.5
# How long answers under way may take when the broker stops.
DRAIN_S = 10.0


class ListenError(Exception):
    """A listener that can't be opened: which, and why."""


class Server:
    """Accepts connections on every listener, and ends those that stall, idle, or are too many."""

    def __init__(self, broker: Broker, loop: asyncio.AbstractEventLoop) -> None:
        self.broker = broker
        self.loop = loop
        self.now_ms = broker.now_ms
        self.max_request_bytes = broker.config.socket_request_max_bytes
        self.frame_memory = FrameMemory(loop, broker.config.queued_bytes_limit)
        self.group_turns = GroupTurns(loop)
        self.receive_view = memoryview(bytearray(START_BYTES))
        self.dispatcher = Dispatcher(broker, HANDLERS)
        self.connections: set[Connection] = set()
        self._per_host: Counter[str] = Counter()
        self._acceptors: list[Acceptor] = []
        self._all_gone = asyncio.Event()
        self._sweeper: asyncio.TimerHandle | None = None

    def listen(self, bound: Iterable[BoundListener]) -> None:
        """Accept connections from now on. Raises OSError."""
        backlog = self.broker.config.socket_listen_backlog_size
        for one in bound:
            for sock in one.sockets:
                self._size_buffers(sock)
                make_connection = partial(Connection, self, one.listener)
                self._acceptors.append(Acceptor(self.loop, sock, make_connection, backlog))
        self._sweeper = self.loop.call_later(SWEEP_EVERY_S, self._sweep)

    def _size_buffers(self, sock: socket.socket) -> None:
        """Give the sockets it accepts the buffers that the user wrote down.

        Kafka's defaults (100 KiB) are left out: they would switch off the system's own tuning.
        """
        for key, option in (
            ("socket.send.buffer.bytes", socket.SO_SNDBUF),
            ("socket.receive.buffer.bytes", socket.SO_RCVBUF),
        ):
            size_bytes = int(self.broker.config.texts.get(key, -1))
            if size_bytes > 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size_bytes)

    # -- connections come and go ------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        """Called by a connection when it is made: it may be one too many."""
        self._all_gone.clear()
        self.connections.add(connection)
        self._per_host[connection.peer_host] += 1
        config = self.broker.config
        if len(self.connections) > config.max_connections:
            connection.close(f"there are {config.max_connections} connections (max.connections)")
            return
        host = connection.peer_host
        limit = config.connection_limits.get(host, config.max_connections_per_ip)
        if self._per_host[host] > limit:
            connection.close(f"{host} has {limit} connections (max.connections.per.ip)")

    def closed(self, connection: Connection) -> None:
        """Called by a connection when it is lost."""
        self.connections.discard(connection)
        self.frame_memory.forget(connection)
        if not self.connections:
            self._all_gone.set()
        self._per_host[connection.peer_host] -= 1
        if not self._per_host[connection.peer_host]:
            del self._per_host[connection.peer_host]

    def _sweep(self) -> None:
        """Look at all connections; at one that was active lately only to see that it was."""
        self._sweeper = self.loop.call_later(SWEEP_EVERY_S, self._sweep)
        now_ms = self.now_ms()
        is_short = self.frame_memory.is_short
        shortest_ms = STALLED_UNDER_PRESSURE_MS if is_short else STALLED_FRAME_MS
        max_idle_ms = self.broker.config.connections_max_idle_ms
        if max_idle_ms >= 0:
            shortest_ms = min(shortest_ms, max_idle_ms)
        for connection in list(self.connections):
            if is_short:
                connection.shrink()
            idle_ms = now_ms - connection.last_active_ms
            if idle_ms >= shortest_ms:
                self._end_what_stalls(connection, idle_ms, max_idle_ms)

    def _end_what_stalls(self, connection: Connection, idle_ms: int, max_idle_ms: int) -> None:
        partial = connection.partial_frame
        if partial is not None and self._has_stalled(connection, idle_ms):
            have, announced = partial
            connection.close(f"its request of {announced} bytes stopped at {have} for {idle_ms} ms")
        elif 0 <= max_idle_ms < idle_ms and not connection.busy:
            connection.close(None)

    def _has_stalled(self, connection: Connection, idle_ms: int) -> bool:
        """Whether a frame under way has made no progress for too long."""
        if self.frame_memory.holds_grant(connection) and self.frame_memory.is_short:
            return idle_ms >= STALLED_UNDER_PRESSURE_MS
        # One that waits for memory can make no progress, and is not to blame for it.
        return idle_ms >= STALLED_FRAME_MS and not connection.starving

    # -- the end ----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Stop accepting; each connection closes when what is in flight has been answered."""
        for acceptor in self._acceptors:
            acceptor.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in list(self.connections):
            connection.finish()

    async def drain(self) -> None:
        """Return when every connection is closed; those that take too long are cut."""
        if self.connections:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._all_gone.wait(), DRAIN_S)
        for connection in list(self.connections):
            connection.close("the broker stops, and its answer has not left")


@dataclass(frozen=True, slots=True)
class BoundListener:
    """A listener whose port is taken, but which does not listen yet."""

    listener: Listener
    sockets: list[socket.socket]

    @property
    def port(self) -> int:
        """The port it has; with port 0 in the configuration, the one it was given."""
        return int(self.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Give the port back."""
        for sock in self.sockets:
            sock.close()


def bind_listeners(listeners: Iterable[Listener]) -> list[BoundListener]:
    """Take the ports of all listeners, so that a start fails before it has touched any data.

    Raises ListenError.
    """
    bound: list[BoundListener] = []
    try:
        for listener in listeners:
            sockets = _bind(listener.host or "", listener.port)
            bound.append(BoundListener(listener, sockets))
    except ListenError:
        for one in bound:
            one.close()
        raise
    return bound


def _bind(host: str, port: int) -> list[socket.socket]:
    """Sockets for a host and port, in every address family the host has.

    `localhost` is 127.0.0.1 and ::1, for clients try either first. No host means every address.
    Port 0 picks a free one, the same for all.
    """
    sockets: list[socket.socket] = []
    where = f"{host or '*'}:{port}"
    try:
        for family, address in _addresses(host, port):
            sock = _bound(family, address, port)
            if sock is not None:
                port = sock.getsockname()[1]
                sockets.append(sock)
    except OSError as error:
        for sock in sockets:
            sock.close()
        raise ListenError(f"cannot listen on {where}: {error.strerror or error}") from error
    if not sockets:
        raise ListenError(f"cannot listen on {where}: it has no address here")
    return sockets


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, str]]:
    if not host:
        both = socket.has_dualstack_ipv6()
        return [(socket.AF_INET6, "::")] if both else [(socket.AF_INET, "0.0.0.0")]  # asked for
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    unique = dict.fromkeys((family, str(address[0])) for family, _, _, _, address in found)
    # IPv4 first: with port 0 it is the family that picks the port.
    return sorted(unique, key=lambda one: one[0] != socket.AF_INET)


def _bound(family: socket.AddressFamily, address: str, port: int) -> socket.socket | None:
    """A bound socket; None where the name has an address of a family this machine does not have."""
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return None
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address == "::" else 1)
    sock.setblocking(False)
    try:
        sock.bind((address, port))
    except OSError as error:
        sock.close()
        if family == socket.AF_INET6 and error.errno == errno.EADDRNOTAVAIL:
            return None
        raise
    return sock
