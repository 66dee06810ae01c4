"""A small HTTP/1.1 server: GET and HEAD of a few paths, one request per connection.

It runs on the broker's event loop. The number of connections, the size of a request and the time
for all of it are limited. After its answer the server sends the end of the stream, and drops what
the client still sends: closing at once could cut the answer off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from http import HTTPStatus
from typing import NamedTuple, cast

from odradek.broker.network.acceptor import Acceptor
from odradek.broker.network.listeners import BoundListener

logger = logging.getLogger("odradek.metrics")

MAX_CONNECTIONS = 32
# These get 503. More are cut, because a refused client may take TIMEOUT_S to close.
MAX_REFUSED_CONNECTIONS = 32
MAX_REQUEST_BYTES = 16 * 1024
TIMEOUT_S = 10.0
BACKLOG = 16
METHODS = ("GET", "HEAD")


class Page(NamedTuple):
    """What a path answers."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Pages = Mapping[str, Callable[[], Awaitable[Page]]]


class HttpServer:
    """Listens from its creation to `close`. `pages` has a function per path."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        bound: BoundListener,
        pages: Pages,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Listen on the bound port, which `close` releases. Raises OSError."""
        self.loop = loop
        self.pages = pages
        self.timeout_s = timeout_s
        self.connections: set[_Connection] = set()
        connect = partial(_Connection, self)
        self._acceptors = [Acceptor(loop, sock, connect, BACKLOG) for sock in bound.sockets]

    def close(self) -> None:
        """Stop listening, and cut all connections."""
        for acceptor in self._acceptors:
            acceptor.close()
        for connection in list(self.connections):
            connection.abort()


class _Connection(asyncio.Protocol):
    """One connection: it reads a request, answers it, and waits until the client closes."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._received = bytearray()
        self._answering: asyncio.Task[None] | None = None
        self._is_answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._timer = self._server.loop.call_later(self._server.timeout_s, self._time_out)
        self._server.connections.add(self)
        if len(self._server.connections) > MAX_CONNECTIONS + MAX_REFUSED_CONNECTIONS:
            self.abort()
        elif len(self._server.connections) > MAX_CONNECTIONS:
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many connections")

    def data_received(self, data: bytes) -> None:
        if self._is_answered or self._answering is not None:
            return
        self._received += data
        head, end, _ = self._received.partition(b"\r\n\r\n")
        if len(head) > MAX_REQUEST_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too long")
        elif end:
            self._serve(head.split(b"\r\n")[0].decode("latin-1"))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 # asyncio's signature
        self._timer.cancel()
        self._server.connections.discard(self)
        if self._answering is not None:
            self._answering.cancel()

    def abort(self) -> None:
        """Cut the connection."""
        self._transport.abort()

    def _serve(self, request_line: str) -> None:
        words = request_line.split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
            self._refuse(HTTPStatus.BAD_REQUEST, "this is not a request of HTTP/1.1")
            return
        method, target, _ = words
        page = self._server.pages.get(target.partition("?")[0])
        if page is None:
            self._refuse(HTTPStatus.NOT_FOUND, f"try {', '.join(self._server.pages)}")
        elif method not in METHODS:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, f"use {' or '.join(METHODS)}")
        else:
            self._answering = self._server.loop.create_task(self._answer_with(page, method))

    async def _answer_with(self, page: Callable[[], Awaitable[Page]], method: str) -> None:
        try:
            self._answer(await page(), has_body=method == "GET")
        except Exception:
            # The root of a request. The broker goes on.
            logger.exception("an HTTP request failed")
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "see the broker's log")

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self._answer(Page(status, f"{reason}\n".encode()))

    def _answer(self, page: Page, *, has_body: bool = True) -> None:
        self._is_answered = True
        self._received.clear()
        head = (
            f"HTTP/1.1 {page.status.value} {page.status.phrase}\r\n"
            f"Content-Type: {page.content_type}\r\n"
            f"Content-Length: {len(page.body)}\r\n"
            f"{_allow(page.status)}"
            "Connection: close\r\n\r\n"
        )
        self._transport.write(head.encode() + (page.body if has_body else b""))
        self._transport.write_eof()

    def _time_out(self) -> None:
        if self._is_answered or self._answering is not None:
            self.abort()  # the client does not read or does not close
            return
        self._refuse(HTTPStatus.REQUEST_TIMEOUT, "no request came")
        self._transport.close()


def _allow(status: HTTPStatus) -> str:
    is_refused = status is HTTPStatus.METHOD_NOT_ALLOWED
    return f"Allow: {', '.join(METHODS)}\r\n" if is_refused else ""


def lines(items: Iterable[str]) -> bytes:
    """A body of one line per item."""
    return "".join(f"{item}\n" for item in items).encode()
