"""The HTTP server of the metrics, with clients that do not behave."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus

import pytest

from odradek.broker.metrics.http_server import (
    MAX_CONNECTIONS,
    MAX_REFUSED_CONNECTIONS,
    MAX_REQUEST_BYTES,
    HttpServer,
    Page,
)
from odradek.broker.network.listeners import bind_listeners
from odradek.config.listeners import parse_http_listener


async def hello() -> Page:
    return Page(HTTPStatus.OK, b"hello\n")


async def broken() -> Page:
    raise RuntimeError("no page")


class Server:
    """An HTTP server with the page /hello."""

    def __init__(self, timeout_s: float) -> None:
        (bound,) = bind_listeners([parse_http_listener("key", "127.0.0.1:0")])
        self.port = bound.port
        pages = {"/hello": hello, "/broken": broken}
        self.http = HttpServer(asyncio.get_running_loop(), bound, pages, timeout_s)

    async def ask(self, request: bytes) -> bytes:
        """The whole answer to these bytes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        answer = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        return answer


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server(timeout_s=30)
    yield server
    server.http.close()


async def test_get_has_a_body_and_head_has_none(server: Server) -> None:
    answer = await server.ask(b"GET /hello?x=1 HTTP/1.1\r\nHost: here\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nhello\n")
    answer = await server.ask(b"HEAD /hello HTTP/1.1\r\n\r\n")
    assert b"\r\nContent-Length: 6\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /elsewhere HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /hello HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", b"405"),
        (b"GET /hello\r\n\r\n", b"400"),
        (b"GET http://x/ HTTP/1.1\r\n\r\n", b"400"),
        (b"\x00\x00\x00\x0a\x00\x12\r\n\r\n", b"400"),
        (b"GET /hello HTTP/1.1\r\nX: " + MAX_REQUEST_BYTES * b"y", b"431"),
        (b"GET /hello HTTP/1.1\r\nX: " + 64 * MAX_REQUEST_BYTES * b"y", b"431"),
        (b"GET /broken HTTP/1.1\r\n\r\n", b"500"),
    ],
)
async def test_a_bad_request_is_refused(server: Server, request_: bytes, status: bytes) -> None:
    assert (await server.ask(request_)).split(b" ")[1] == status


async def test_a_request_may_come_in_pieces(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for byte in b"GET /hello HTTP/1.1\r\n\r\n":
        writer.write(bytes([byte]))
        await asyncio.sleep(0)
    assert (await reader.read()).endswith(b"hello\n")
    writer.close()


async def test_a_client_that_sends_nothing_gets_408() -> None:
    server = Server(timeout_s=0.01)
    assert (await server.ask(b"GET /he")).split(b" ")[1] == b"408"
    server.http.close()


async def test_connections_are_limited(server: Server) -> None:
    idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(MAX_CONNECTIONS)]
    while len(server.http.connections) < MAX_CONNECTIONS:  # noqa: ASYNC110  nothing tells of it
        await asyncio.sleep(0.001)
    assert (await server.ask(b"GET /hello HTTP/1.1\r\n\r\n")).split(b" ")[1] == b"503"
    for _, writer in idle:
        writer.close()
    while server.http.connections:  # noqa: ASYNC110  nothing tells of it
        await asyncio.sleep(0.001)
    assert (await server.ask(b"GET /hello HTTP/1.1\r\n\r\n")).split(b" ")[1] == b"200"


async def test_clients_that_do_not_close_after_a_refusal_are_limited_too(server: Server) -> None:
    most = MAX_CONNECTIONS + MAX_REFUSED_CONNECTIONS
    idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(most)]
    while len(server.http.connections) < most:  # noqa: ASYNC110  nothing tells of it
        await asyncio.sleep(0.001)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    with suppress(ConnectionError):
        assert await reader.read() == b""
    assert len(server.http.connections) == most
    for _, each in [*idle, (reader, writer)]:
        each.close()
