"""Accepts connections: all that wait, up to a limit in each turn of the event loop.

libuv accepts one connection per turn. When turns are long (a thousand group members, each with a
request), new clients would be accepted one by one, and the last members of a group would join it
dozens of generations after the first. So the loop only reports that the socket is readable, and
Acceptor accepts.

Nothing is accepted for a second when the process has hardly a file descriptor left: a connection
needs two, its socket and a duplicate of it for sending (output.py). The files of partitions do not
use the last descriptors (Files.descriptor_limit). Nothing is accepted either while a limit of the
broker or of the listener holds the last accepted connection back (connection_limits.py). In both
cases existing connections go on, and new ones wait in the kernel's queue.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.storage.process_limits import descriptor_limits

from .connection_limits import ListenerLimits
from .listeners import host_and_port

logger = logging.getLogger("odradek.server")

ACCEPTED_PER_TURN = 64
RETRY_S = 1.0
LOG_EVERY_S = 60.0
SPARE_DESCRIPTORS = 8
# The system lacks a resource. The connection stays in the queue and can be accepted later.
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


P = TypeVar("P", bound=asyncio.BaseProtocol)


class Acceptor(Generic[P]):
    """A listening socket; each connection that it accepts gets its own protocol object.

    The object is counted in `limits` before it is set up. Its owner calls `limits.closed` when the
    connection ends.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        make_protocol: Callable[[], P],
        backlog: int,
        limits: ListenerLimits | None = None,
        set_up: Callable[[P, socket.socket], Awaitable[object]] | None = None,
    ) -> None:
        """Start to listen. Raises OSError.

        `set_up` connects a protocol object with its socket; by default, the loop does.
        """
        self._loop = loop
        self._socket = sock
        self._make_protocol = make_protocol
        self._set_up = set_up or self._connect_plain
        self._limits = limits
        self._connecting = BackgroundTasks(loop)
        self._retry: asyncio.TimerHandle | None = None
        # When a lack of descriptors may be logged again, in the loop's time.
        self._log_again_s = 0.0
        # Few descriptors may be left, because a socket had a number from `_careful_from` on. Then
        # they are checked before each connection, and one is accepted in a turn.
        self._is_careful = False
        limit, _ = descriptor_limits()
        self._careful_from = limit - 2 * ACCEPTED_PER_TURN - SPARE_DESCRIPTORS
        # The accepted connection that the limits hold back: its socket and address.
        self._held: tuple[socket.socket, str] | None = None
        self._being_set_up: set[socket.socket] = set()
        self._refused: dict[socket.socket, asyncio.TimerHandle] = {}  # over a limit: closed later
        sock.setblocking(False)
        sock.listen(backlog)
        self._watch()

    def close(self) -> None:
        """Stop accepting, and close the connections that are still being set up.

        May be called again.
        """
        if self._socket.fileno() < 0:
            return
        self._loop.remove_reader(self._socket)
        if self._retry is not None:
            self._retry.cancel()
        for client in self._being_set_up:
            # Its transport is still made, finds the end, and closes. If its task were cancelled,
            # `connection_lost` might never be called, and its descriptors would stay open.
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
        for client, timer in self._refused.items():
            timer.cancel()
            client.close()
        if self._held is not None:
            self._held[0].close()
            self._held = None
        self._socket.close()

    def _watch(self) -> None:
        self._retry = None
        self._loop.add_reader(self._socket, self._accept)

    def _pause(self, seconds: float, then: Callable[[], None]) -> None:
        self._loop.remove_reader(self._socket)
        self._retry = self._loop.call_later(seconds, then)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_PER_TURN):
            try:
                if self._is_careful:
                    self._check_descriptors()
                client, name = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._note_exhaustion(error)
                    self._pause(RETRY_S, self._watch)
                    return
                continue  # the client has closed the connection
            self._is_careful = client.fileno() >= self._careful_from
            address, _ = host_and_port(name)
            delay_ms = 0 if self._limits is None else self._limits.delay_ms()
            if delay_ms or not self._has_room():
                self._held = client, address
                self._pause(delay_ms / 1000, self._release)
                return
            self._admit(client, address)
            if self._is_careful:  # its second descriptor is opened in a later turn
                return

    def _check_descriptors(self) -> None:
        """Raise OSError if fewer than SPARE_DESCRIPTORS can be opened."""
        taken: list[int] = []
        try:
            while len(taken) < SPARE_DESCRIPTORS:
                taken.append(os.dup(self._socket.fileno()))
        finally:
            for descriptor in taken:
                os.close(descriptor)

    def _note_exhaustion(self, error: OSError) -> None:
        """Log that there are too few descriptors, but not at each attempt."""
        now_s = self._loop.time()
        if now_s >= self._log_again_s:
            self._log_again_s = now_s + LOG_EVERY_S
            logger.error(
                "no connection is accepted until others are closed: %s (raise ulimit -n, or "
                "LimitNOFILE of the service)",
                error.strerror,
            )

    def _has_room(self) -> bool:
        return self._limits is None or self._limits.has_room()

    def _release(self) -> None:
        """Admit the connection that waits as soon as there is room for it, and go on accepting."""
        if self._held is None:  # closed
            return
        if self._limits is not None and not self._limits.has_room():
            self._limits.when_room(self._release)
            return
        (client, address), self._held = self._held, None
        self._admit(client, address)
        self._watch()

    def _admit(self, client: socket.socket, address: str) -> None:
        protocol = self._make_protocol()
        refusal = None if self._limits is None else self._limits.open(protocol, address)
        if refusal is None:
            self._being_set_up.add(client)
            self._connecting.start(self._connect(protocol, client))
            return
        logger.info("closed a connection of %s: %s", address, refusal.reason)
        if refusal.after_ms:
            self._refused[client] = self._loop.call_later(
                refusal.after_ms / 1000, self._close_refused, client
            )
        else:
            client.close()

    def _close_refused(self, client: socket.socket) -> None:
        del self._refused[client]
        client.close()

    async def _connect_plain(self, protocol: P, client: socket.socket) -> None:
        await self._loop.connect_accepted_socket(lambda: protocol, client)

    async def _connect(self, protocol: P, client: socket.socket) -> None:
        try:
            await self._set_up(protocol, client)
        except OSError as error:
            logger.warning("a connection could not be set up: %s", error)
            if self._limits is not None:
                self._limits.closed(protocol)
            client.close()
        finally:
            self._being_set_up.discard(client)
