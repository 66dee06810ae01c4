"""Accepts connections: all that wait, up to a limit in each turn of the event loop.

libuv accepts one connection per turn. When turns are long (a thousand group members, each with a
request), new clients would be accepted one by one, and the last members of a group would join it
dozens of generations after the first. So the loop only reports that the socket is readable, and
Acceptor accepts.

When the process has no file descriptor left, nothing is accepted for a second. Existing connections
go on, and new ones wait in the kernel's queue.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Awaitable, Callable

from odradek.broker.lifecycle.background_tasks import BackgroundTasks

logger = logging.getLogger("odradek.server")

ACCEPTED_PER_TURN = 64
RETRY_S = 1.0
# The system lacks a resource. The connection stays in the queue and can be accepted later.
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """A listening socket, and the connections that it accepts."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        connect: Callable[[socket.socket], Awaitable[object]],
        backlog: int,
    ) -> None:
        """Start to listen. `connect` sets an accepted connection up. Raises OSError."""
        self._loop = loop
        self._socket = sock
        self._set_up = connect
        self._connecting = BackgroundTasks(loop)
        self._retry: asyncio.TimerHandle | None = None
        sock.setblocking(False)
        sock.listen(backlog)
        self._watch()

    def close(self) -> None:
        """Stop accepting, and close the connections that are still being set up."""
        self._loop.remove_reader(self._socket)
        if self._retry is not None:
            self._retry.cancel()
        for task in self._connecting.running:
            task.cancel()
        self._socket.close()

    def _watch(self) -> None:
        self._retry = None
        self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_PER_TURN):
            try:
                client, _ = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._pause(error)
                    return
                continue  # the client has closed the connection
            self._connecting.start(self._connect(client))

    def _pause(self, error: OSError) -> None:
        logger.error("cannot accept connections for %g s: %s", RETRY_S, error.strerror)
        self._loop.remove_reader(self._socket)
        self._retry = self._loop.call_later(RETRY_S, self._watch)

    async def _connect(self, client: socket.socket) -> None:
        try:
            await self._set_up(client)
        except OSError as error:
            logger.warning("a connection could not be set up: %s", error)
            client.close()
        except asyncio.CancelledError:
            client.close()
            raise
