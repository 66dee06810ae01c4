"""The HTTP server, with clients that do not behave."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from time import monotonic

import pytest

from odradek.broker.http.connection import MAX_REQUEST_BYTES, HttpConnection
from odradek.broker.http.messages import HttpRequest, HttpResponse, text_response
from odradek.broker.http.routes import MAX_BODY_BYTES, Route
from odradek.broker.http.server import MAX_CONNECTIONS, MAX_REFUSED_CONNECTIONS, HttpServer
from odradek.broker.network.listeners import bind_listeners
from odradek.broker.network.output import queued_bytes
from odradek.broker.turns.slices import SLICE_S
from odradek.config.listeners import parse_http_listener
from tests.support.broker_in_loop import until


async def hello(_: HttpRequest) -> HttpResponse:
    return text_response("hello\n")


async def broken(_: HttpRequest) -> HttpResponse:
    raise RuntimeError("no page")


async def echo(request: HttpRequest) -> HttpResponse:
    """The name in the path, what was asked for, and the body."""
    text = f"{request.parameters['name']} {dict(request.query)} {request.body.decode()}"
    return text_response(text)


async def numbers(_: HttpRequest) -> HttpResponse:
    async def each() -> AsyncGenerator[bytes, None]:
        for number in range(3):
            yield b"%d\n" % number

    return HttpResponse(HTTPStatus.OK, each())


async def later(_: HttpRequest) -> HttpResponse:
    await asyncio.sleep(0.05)  # the end of what the client sends is there before
    return text_response("hello\n")


async def worked(_: HttpRequest) -> HttpResponse:
    """The first piece takes a turn to make. The second says whether others had a turn since."""

    async def each() -> AsyncGenerator[bytes, None]:
        others = asyncio.Event()
        asyncio.get_running_loop().call_soon(others.set)
        until_s = monotonic() + SLICE_S
        while monotonic() < until_s:
            pass
        yield b"working"
        yield b"others" if others.is_set() else b"nobody"

    return HttpResponse(HTTPStatus.OK, each())


async def watched(_: HttpRequest) -> HttpResponse:
    async def each() -> AsyncGenerator[bytes, None]:
        await asyncio.sleep(0.05)
        while True:
            yield b"now"
            await asyncio.sleep(60)

    return HttpResponse(HTTPStatus.OK, each(), is_endless=True)


HOST = b"Host: here\r\n"
LARGE = b"GET /large HTTP/1.1\r\n" + HOST + b"\r\n"
LARGE_BYTES = 20_000_000
CLOSE = b"Connection: close\r\n\r\n"


class Server:
    """An HTTP server with a few pages."""

    def __init__(self, timeout_s: float, kept_s: float = 60.0) -> None:
        (bound,) = bind_listeners([parse_http_listener("key", "127.0.0.1:0")])
        self.port = bound.port
        self.ended = asyncio.Event()
        self.large_count = self.held_count = 0  # requests that were begun
        self.may_answer = asyncio.Semaphore(0)
        routes = (
            Route("GET", "/hello", hello),
            Route("GET", "/broken", broken),
            Route("POST", "/echo/{name}", echo),
            Route("GET", "/echo/list", hello),
            Route("GET", "/numbers", numbers),
            Route("GET", "/later", later),
            Route("GET", "/large", self.large),
            Route("GET", "/long", self.long),
            Route("GET", "/held", self.held),
            Route("GET", "/worked", worked),
            Route("GET", "/watched", watched),
            Route("GET", "/endless", self.endless),
            Route("GET", "/searched", self.searched),
        )
        loop = asyncio.get_running_loop()
        self.http = HttpServer(loop, bound, routes, timeout_s, kept_s=kept_s)

    async def large(self, _: HttpRequest) -> HttpResponse:
        self.large_count += 1
        return text_response("x" * LARGE_BYTES)

    async def long(self, _: HttpRequest) -> HttpResponse:
        async def one() -> AsyncGenerator[bytes, None]:
            yield bytes(LARGE_BYTES)

        return HttpResponse(HTTPStatus.OK, one())

    async def held(self, _: HttpRequest) -> HttpResponse:
        self.held_count += 1
        await self.may_answer.acquire()
        return text_response("")

    async def searched(self, _: HttpRequest) -> HttpResponse:
        """A response that finds nothing to send. `ended` is set when it is not asked for."""

        async def nothing() -> AsyncGenerator[bytes, None]:
            try:
                while True:
                    yield b""
                    await asyncio.sleep(0.01)
            finally:
                self.ended.set()

        return HttpResponse(HTTPStatus.OK, nothing(), probe=b"?")

    async def endless(self, _: HttpRequest) -> HttpResponse:
        """A response without an end. `ended` is set when it is not asked for any more."""

        async def zeros() -> AsyncGenerator[bytes, None]:
            try:
                while True:
                    yield bytes(65536)
            finally:
                self.ended.set()

        return HttpResponse(HTTPStatus.OK, zeros())

    async def ask(self, request: bytes, *, ends: bool = False) -> bytes:
        """The whole answer to these bytes, to a client that `ends` its stream or waits."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        if ends:
            writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        return answer


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server(timeout_s=30)
    yield server
    server.http.close()


async def test_get_has_a_body_and_head_has_none(server: Server) -> None:
    answer = await server.ask(b"GET /hello?x=1 HTTP/1.1\r\nHost: here\r\n" + CLOSE)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nX-Content-Type-Options: nosniff\r\n" in answer
    assert answer.endswith(b"\r\n\r\nhello\n")
    answer = await server.ask(b"HEAD /hello HTTP/1.1\r\n" + HOST + CLOSE)
    assert b"\r\nContent-Length: 6\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /elsewhere HTTP/1.1\r\n" + HOST, b"404"),
        (b"GET /echo/ HTTP/1.1\r\n" + HOST, b"404"),
        (b"POST /hello HTTP/1.1\r\nContent-Length: 1\r\n" + HOST, b"405"),
        (b"DELETE /echo/x HTTP/1.1\r\n" + HOST, b"405"),
        (b"GET /hello HTTP/1.1\r\n", b"400"),  # no host
        (b"GET /hello\r\n", b"400"),
        (b"GET http://x/ HTTP/1.1\r\n" + HOST, b"400"),
        (b"HEAD http://x/ HTTP/1.1\r\n" + HOST, b"400"),
        (b"GET /hello?" + 101 * b"x&" + b"y=1 HTTP/1.1\r\n" + HOST, b"400"),
        (b"\x00\x00\x00\x0a\x00\x12\r\n", b"400"),
        (b"GET /hello HTTP/1.1\r\nX: " + 64 * MAX_REQUEST_BYTES * b"y", b"431"),
        (b"GET /broken HTTP/1.1\r\n" + HOST, b"500"),
    ],
)
async def test_a_bad_request_is_refused(server: Server, request_: bytes, status: bytes) -> None:
    assert (await server.ask(request_ + CLOSE)).split(b" ")[1] == status


async def test_a_refusal_has_a_body_also_after_a_request_without_one(server: Server) -> None:
    head = b"HEAD /hello HTTP/1.1\r\n" + HOST + b"\r\n"
    answer = await server.ask(head + b"GET x HTTP/1.1\r\n" + HOST + b"\r\n")
    assert answer.endswith(b"the request's target is not a path\n")


async def test_a_request_may_come_in_pieces(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for byte in b"GET /hello HTTP/1.1\r\n" + HOST + CLOSE:
        writer.write(bytes([byte]))
        await asyncio.sleep(0)
    assert (await reader.read()).endswith(b"hello\n")
    writer.close()


async def test_a_body_and_the_parts_of_a_path_are_decoded(server: Server) -> None:
    head = b"POST /echo/a%2Fb%20c?x=1&y=&x=%C3%A4 HTTP/1.1\r\nContent-Length: 4\r\n"
    answer = await server.ask(head + HOST + CLOSE + b"body")
    assert answer.endswith("a/b c {'x': ['1', 'ä'], 'y': ['']} body".encode())


async def test_a_literal_part_of_a_path_goes_before_a_name(server: Server) -> None:
    answer = await server.ask(b"GET /echo/list HTTP/1.1\r\n" + HOST + CLOSE)
    assert answer.endswith(b"hello\n")


async def test_a_body_of_unknown_length_is_read(server: Server) -> None:
    head = b"POST /echo/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HOST + CLOSE
    assert (await server.ask(head + b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")).endswith(b"abc")


async def test_a_client_that_waits_before_its_body_is_told_to_go_on(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = b"POST /echo/x HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n"
    writer.write(head + HOST + CLOSE)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
    writer.write(b"x")
    assert (await reader.read()).endswith(b"x")
    writer.close()


async def test_a_body_is_limited(server: Server) -> None:
    head = b"POST /echo/x HTTP/1.1\r\nContent-Length: %d\r\n" % (MAX_BODY_BYTES + 1)
    answer = await server.ask(head + HOST + CLOSE + bytes(MAX_BODY_BYTES + 1))
    assert answer.split(b" ")[1] == b"413"


async def test_requests_of_a_connection_are_answered_in_order(server: Server) -> None:
    first = b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n"
    second = b"POST /echo/x HTTP/1.1\r\nContent-Length: 1\r\n" + HOST + b"\r\ny"
    answer = await server.ask(first + second + b"GET /numbers HTTP/1.1\r\n" + HOST + CLOSE)
    assert answer.index(b"hello\n") < answer.index(b"x {} y") < answer.index(b"2\r\n2\n")


async def test_a_client_that_takes_nothing_is_cut_off() -> None:
    server = Server(timeout_s=0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
    writer.write(b"GET /endless HTTP/1.1\r\n" + HOST + CLOSE)
    await asyncio.wait_for(server.ended.wait(), 30)
    with suppress(ConnectionError):
        await reader.read()
    writer.close()
    server.http.close()


async def test_the_next_request_is_read_when_the_client_has_taken_the_response(
    server: Server,
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
    writer.write(2 * LARGE)
    await reader.readexactly(1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert server.large_count == 1
    await asyncio.wait_for(reader.readexactly(LARGE_BYTES + LARGE_BYTES // 2), 30)
    assert server.large_count == 2
    writer.close()


async def test_a_client_that_reads_slowly_is_not_cut_off(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
    writer.write(b"GET /long HTTP/1.1\r\n" + HOST + b"\r\n")
    await reader.readexactly(1)
    (connection,) = server.http.connections
    connection._expect_reading()  # the deadline begins
    before_bytes = connection._untaken_bytes
    await reader.readexactly(LARGE_BYTES // 10)
    await until(lambda: untaken_bytes(connection) < before_bytes)
    connection._time_out()
    assert len(await asyncio.wait_for(reader.readexactly(LARGE_BYTES // 2), 30))
    writer.close()


def untaken_bytes(connection: HttpConnection) -> int:
    """The bytes for the client in the transport and in the socket."""
    transport = connection._transport
    sent = queued_bytes(transport.get_extra_info("socket").fileno())
    return transport.get_write_buffer_size() + sent


async def test_a_client_that_reads_nothing_and_begins_a_request_is_cut_off(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
    await until(lambda: server.http.connections)
    (connection,) = server.http.connections
    connection._transport.set_write_buffer_limits(2 * LARGE_BYTES)  # all of the response is written
    writer.write(LARGE)
    await reader.readexactly(1)
    await until(lambda: connection._is_between_requests)
    writer.write(b"GET /he")
    await until(lambda: not connection._is_between_requests)
    server.http.timeout_s = 0.05
    connection.give_up_place()
    await until(lambda: not server.http.connections)
    writer.close()


async def test_other_clients_are_served_between_two_pieces(server: Server) -> None:
    answer = await server.ask(b"GET /worked HTTP/1.1\r\n" + HOST + CLOSE)
    assert b"others" in answer


async def test_a_client_that_takes_no_page_is_cut_off() -> None:
    server = Server(timeout_s=0.05)
    for ends in (False, True):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
        writer.write(LARGE)
        if ends:
            writer.write_eof()
        await reader.readexactly(1)
        while server.http.connections:  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.001)
        writer.close()
    server.http.close()


async def test_what_is_served_ends_with_its_client(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /endless HTTP/1.1\r\n" + HOST + CLOSE)
    await reader.readexactly(100_000)
    writer.close()
    await asyncio.wait_for(server.ended.wait(), 30)


async def test_a_client_that_sends_on_without_reading_is_cut_off(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
    writer.write(b"GET /endless HTTP/1.1\r\n" + HOST + b"\r\n")
    await reader.readexactly(1)
    writer.write(bytes(MAX_REQUEST_BYTES + 1))
    with suppress(ConnectionError):
        await asyncio.wait_for(reader.read(), 30)  # it ends
    writer.close()
    assert server.ended.is_set()


async def test_what_a_client_sends_ahead_is_limited_for_all_its_requests_together(
    server: Server,
) -> None:
    request = b"GET /held HTTP/1.1\r\n" + HOST + b"\r\n"
    ahead = request * (MAX_REQUEST_BYTES * 2 // 3 // len(request))
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    await until(lambda: server.held_count == 1)
    (connection,) = server.http.connections
    writer.write(ahead)
    await until(lambda: len(connection._http.trailing_data[0]) == len(ahead))
    server.may_answer.release()
    await until(lambda: server.held_count == 2)
    writer.write(ahead)
    await until(lambda: not server.http.connections)
    writer.close()


async def test_a_client_that_sends_nothing_gets_408() -> None:
    server = Server(timeout_s=0.01)
    assert (await server.ask(b"GET /he")).split(b" ")[1] == b"408"
    server.http.close()


async def test_a_client_that_asks_for_no_more_is_closed_without_a_word() -> None:
    server = Server(timeout_s=0.05)
    answer = await server.ask(b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n")
    assert answer.endswith(b"\r\n\r\nhello\n")
    server.http.close()


async def test_a_request_has_its_whole_time_from_its_first_byte_on(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n")
    await reader.readuntil(b"hello\n")
    (connection,) = server.http.connections
    await until(lambda: connection._is_between_requests)
    server.http.timeout_s = 0.01  # of a deadline that is set from now on
    writer.write(b"GET /he")
    assert (await asyncio.wait_for(reader.read(), 10)).split(b" ")[1] == b"408"
    writer.close()


async def test_connections_are_limited(server: Server) -> None:
    idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(MAX_CONNECTIONS)]
    while len(server.http.connections) < MAX_CONNECTIONS:  # noqa: ASYNC110  nothing tells of it
        await asyncio.sleep(0.001)
    assert (await server.ask(b"GET /hello HTTP/1.1\r\n" + HOST + CLOSE)).split(b" ")[1] == b"503"
    for _, writer in idle:
        writer.close()
    while server.http.connections:  # noqa: ASYNC110  nothing tells of it
        await asyncio.sleep(0.001)
    assert (await server.ask(b"GET /hello HTTP/1.1\r\n" + HOST + CLOSE)).split(b" ")[1] == b"200"


async def test_a_connection_without_a_request_makes_room_for_another() -> None:
    server = Server(60.0, kept_s=0.0)
    first = await asyncio.open_connection("127.0.0.1", server.port)
    first[1].write(b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n")
    assert (await first[0].readline()).split(b" ")[1] == b"200"
    watching = await asyncio.open_connection("127.0.0.1", server.port)
    watching[1].write(b"GET /watched HTTP/1.1\r\n" + HOST + b"\r\n")
    assert (await watching[0].readline()).split(b" ")[1] == b"200"
    idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(MAX_CONNECTIONS)]
    for _ in range(3):
        answer = await server.ask(b"GET /hello HTTP/1.1\r\n" + HOST + CLOSE)
        assert answer.split(b" ")[1] == b"200"
    assert (await first[0].read()).endswith(b"\r\n\r\nhello\n")  # and then it was closed
    assert b"408" in await idle[0][0].read()
    assert b"now" in await watching[0].readuntil(b"now")
    for _, writer in (first, watching, *idle):
        writer.close()
    server.http.close()


async def test_a_client_that_is_gone_is_noticed_by_a_probe(server: Server) -> None:
    request = b"GET /searched HTTP/1.1\r\n" + HOST + b"\r\n"
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    writer.close()
    await asyncio.wait_for(server.ended.wait(), 60)
    server.ended.clear()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    writer.write_eof()  # it has not gone
    await reader.readuntil(b"\r\n?\r\n")
    assert not server.ended.is_set()
    writer.close()
    await asyncio.wait_for(server.ended.wait(), 60)


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


async def test_a_client_that_sends_no_more_is_answered(server: Server) -> None:
    for request, end in (
        (b"GET /hello HTTP/1.1\r\n" + HOST + b"\r\n", b"hello\n"),
        (b"GET /numbers HTTP/1.0\r\n" + HOST + b"\r\n", b"0\n1\n2\n"),
        (2 * (b"GET /later HTTP/1.1\r\n" + HOST + b"\r\n"), b"hello\n"),
    ):
        answer = await server.ask(request, ends=True)
        assert answer.endswith(end)
        assert answer.count(b" 200 OK") == request.count(b"GET")
    assert (await server.ask(b"GET /he", ends=True)).split(b" ")[1] == b"400"
    assert await server.ask(b"", ends=True) == b""
    while server.http.connections:  # noqa: ASYNC110  nothing tells of it
        await asyncio.sleep(0.001)


async def test_what_has_no_end_ends_with_the_input_of_its_client(server: Server) -> None:
    request = b"GET /watched HTTP/1.1\r\n" + HOST + b"\r\n"
    assert (await server.ask(request, ends=True)).count(b"now") == 1
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    await reader.readuntil(b"now")
    assert server.http.connections
    writer.write_eof()
    while server.http.connections:  # noqa: ASYNC110  nothing tells of it
        await asyncio.sleep(0.001)
    writer.close()
