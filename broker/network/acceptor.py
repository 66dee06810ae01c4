"""Lets clients in: at each turn of the loop all who wait, up to a limit.

libuv accepts one connection a turn. While turns are long (a thousand members of a group, each with
a request) newcomers would get in one by one, and a group's last members would join it dozens of
generations after the first. So the loop only tells that somebody waits.

Without descriptors left nobody gets in for a second: who is connected goes on, newcomers wait in
the kernel's queue, and none is cut off.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

logger = logging.getLogger("odradek.server")

ACCEPTED_PER_TURN = 64
RETRY_S = 1.0
# No fault of the client that is to be let in: what it takes may be there again later.
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """A listening socket; every connection it accepts gets a protocol of its own."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: socket.socket,
        make_protocol: Callable[[], asyncio.BufferedProtocol],
        backlog: int,
    ) -> None:
        """Listen from now on. Raises OSError."""
        self._loop = loop
        self._socket = sock
        self._make_protocol = make_protocol
        self._coming: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        sock.setblocking(False)
        sock.listen(backlog)
        self._watch()

    def close(self) -> None:
        """Accept nobody any more; who has not quite come in is cut off."""
        self._loop.remove_reader(self._socket)
        if self._retry is not None:
            self._retry.cancel()
        for task in self._coming:
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
                continue  # the client has gone again
            self._let_in(client)

    def _pause(self, error: OSError) -> None:
        logger.error("cannot accept connections for %g s: %s", RETRY_S, error.strerror)
        self._loop.remove_reader(self._socket)
        self._retry = self._loop.call_later(RETRY_S, self._watch)

    def _let_in(self, client: socket.socket) -> None:
        task = self._loop.create_task(self._connect(client))
        self._coming.add(task)
        task.add_done_callback(self._coming.discard)

    async def _connect(self, client: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make_protocol, client)
        except OSError as error:
            logger.warning("a connection could not be set up: %s", error)
            client.close()
        except asyncio.CancelledError:
            client.close()
            raise
