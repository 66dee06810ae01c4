"""One connection of an HTTP/1.1 client. h11 parses and writes; this connects it to the event loop.

Requests are served one after another: the next one is read when the client has taken most of the
last response. A response whose body is an iterator is written as fast as the client takes it.

What a client may use is limited:

    bytes   of a request's head, of its body, and of what it sends while it waits for a response
    time    from the connection until the first request is complete; from a response until the next
            request begins; from there until that request is complete; and while the client takes
            nothing of a response. Each of these may last `timeout_s`

A client may send the end of its stream after its last request, and still gets the response.

The number of connections is limited too (server.py). At the limit a new connection takes the place
of the one that has waited longest for a request.

After a response that ends the connection, the server sends the end of the stream and drops what the
client still sends: closing at once could cut the response off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from http import HTTPStatus
from time import monotonic
from typing import Protocol, cast
from urllib.parse import parse_qs

import h11

from odradek.broker.network.listeners import host_and_port
from odradek.broker.network.output import queued_bytes
from odradek.broker.turns.slices import SLICE_S

from .messages import ErrorResponse, HttpError, HttpRequest, HttpResponse
from .routes import Route, Routes

logger = logging.getLogger("odradek.http")

# The limit of a request's head, and of what a client sends while its last request is served.
MAX_REQUEST_BYTES = 16 * 1024
# A browser must not guess the type of a response: it may contain text that clients have written and
# that looks like a page or a script.
_NO_SNIFFING = ("X-Content-Type-Options", "nosniff")


class Server(Protocol):
    """What a connection needs of the server that accepted it: HttpServer, which imports this file.

    For `timeout_s` see the module's docstring.
    """

    loop: asyncio.AbstractEventLoop
    routes: Routes
    timeout_s: float
    error_response: ErrorResponse

    def admit(self, connection: HttpConnection) -> str | None:
        """Count a new connection. Returns why it is refused, if it is."""

    def forget(self, connection: HttpConnection) -> None:
        """Forget a connection that is closed."""


class HttpConnection(asyncio.Protocol):
    """The protocol object of one accepted socket."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_REQUEST_BYTES)
        self._request: h11.Request | None = None
        self._path = ""  # of the request
        self._route: Route | None = None
        self._parameters: dict[str, str] = {}
        self._body = bytearray()
        self._serving: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        # A response has been sent, and nothing of the next request has arrived.
        self._is_between_requests = False
        self._is_endless = False  # a response without an end is being written
        self._has_client_ended = False  # the client has sent the end of its stream
        self._is_ending = False  # no further request is served
        # What was written and not yet taken by the client at the last call of `_expect_reading`.
        self._untaken_bytes = 0

    # -- the transport's calls --------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._waits_since_s = self._server.loop.time()
        self._peer_host, _ = host_and_port(transport.get_extra_info("peername"))
        self._set_deadline()
        refusal = self._server.admit(self)
        if refusal is not None:
            self._refuse(HttpError(HTTPStatus.SERVICE_UNAVAILABLE, refusal))

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        if self._is_between_requests:
            self._is_between_requests = False
            self._set_deadline()
        self._http.receive_data(data)
        if self._serving is None:
            self._read()
        elif len(self._http.trailing_data[0]) > MAX_REQUEST_BYTES:
            self.abort()

    def eof_received(self) -> bool:
        """Note that the client has sent the end of its stream. Returns False to close at once.

        Otherwise the connection stays open until the requests that have arrived are answered.
        """
        if self._is_ending or self._is_endless:
            return False
        self._has_client_ended = True
        self._http.receive_data(b"")
        if self._serving is None:
            self._read()
        return True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 # asyncio's signature
        self._is_ending = True
        self._clear_deadline()
        self._server.forget(self)
        if self._serving is not None:
            self._serving.cancel()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def abort(self) -> None:
        """Cut the connection."""
        self._transport.abort()

    @property
    def waits_since_s(self) -> float | None:
        """Since when the server waits for a request, on the loop's clock; None: it does not."""
        return None if self._is_ending or self._serving is not None else self._waits_since_s

    def give_up_place(self) -> None:
        """Close the connection now, as if the client's time for its request were over."""
        self._time_out()

    # -- requests ---------------------------------------------------------------------------------

    def _read(self) -> None:
        """Read what has arrived, until a request is complete."""
        try:
            while not self._is_ending:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return
                if isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data):
                    self._take(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    self._clear_deadline()
                    self._serving = self._server.loop.create_task(self._serve())
                    return
                elif isinstance(event, h11.ConnectionClosed):
                    self._close()
                    return
        except h11.RemoteProtocolError as error:
            self._refuse(HttpError(HTTPStatus(error.error_status_hint), str(error)))
        except HttpError as error:
            self._refuse(error)

    def _begin(self, request: h11.Request) -> None:
        """Find who serves the request. Raises HttpError."""
        self._request = request
        target = request.target.decode("latin-1")
        if not target.startswith("/"):
            raise HttpError(HTTPStatus.BAD_REQUEST, "the request's target is not a path")
        self._path = target.partition("?")[0]
        self._route, self._parameters = self._server.routes.find(
            request.method.decode("latin-1"), self._path
        )
        self._body.clear()
        if self._http.they_are_waiting_for_100_continue:
            go_on = self._http.send(h11.InformationalResponse(status_code=100, headers=[]))
            self._transport.write(go_on or b"")

    def _take(self, data: bytes) -> None:
        assert self._route is not None
        self._body += data
        if len(self._body) > self._route.max_body_bytes:
            raise HttpError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"a body may have {self._route.max_body_bytes} bytes here",
            )

    async def _serve(self) -> None:
        """Answer a complete request, and begin with the next one."""
        assert self._request is not None
        assert self._route is not None
        try:
            request = self._parsed(self._request)
            response = await self._route.handle(request)
        except HttpError as error:
            response = self._server.error_response(error, self._path)
        except Exception:
            # The root of a request: an error must not end the broker.
            logger.exception("an HTTP request failed")
            failure = HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, "see the broker's log")
            response = self._server.error_response(failure, self._path)
        try:
            await self._write(response)
        except Exception:
            # A body has failed after its head was sent: the client must not take it for whole.
            logger.exception("an HTTP response failed")
            self.abort()
            return
        finally:
            self._serving = None
            self._is_endless = False
        if self._is_ending:
            return
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._set_deadline()
            self._waits_since_s = self._server.loop.time()
            self._path = ""
            self._request = None
            self._http.start_next_cycle()
            has_next_begun = bool(self._http.trailing_data[0])
            self._is_between_requests = not has_next_begun
            self._read()
        else:
            self._end()

    def _parsed(self, request: h11.Request) -> HttpRequest:
        _, _, query = request.target.decode("latin-1").partition("?")
        try:
            values = parse_qs(query, keep_blank_values=True, max_num_fields=100)
        except ValueError:
            raise HttpError(HTTPStatus.BAD_REQUEST, "more than 100 values in a query") from None
        return HttpRequest(
            method=request.method.decode("latin-1"),
            path=self._path,
            query=values,
            headers={name.decode(): value.decode("latin-1") for name, value in request.headers},
            body=bytes(self._body),
            peer_host=self._peer_host,
            parameters=self._parameters,
        )

    # -- responses --------------------------------------------------------------------------------

    async def _write(self, response: HttpResponse) -> None:
        """Write a response. Returns when the client has taken most of it."""
        self._transport.write(self._head(response))
        if not isinstance(response.body, bytes) and self._has_body:
            await self._write_pieces(response.body, response)
        self._transport.write(self._http.send(h11.EndOfMessage()) or b"")
        await self._drain()

    async def _write_pieces(
        self, pieces: AsyncGenerator[bytes, None], response: HttpResponse
    ) -> None:
        """Write pieces as the client takes them. Other clients are served after SLICE_S."""
        turn_ends_s = monotonic() + SLICE_S
        async with aclosing(pieces):
            async for piece in pieces:
                # An empty piece says that there is nothing to send yet. A client that has sent the
                # end of its stream may still read, or may be gone. Only sending shows which.
                may_be_gone = not piece and self._has_client_ended
                data = response.probe if may_be_gone else piece
                self._transport.write(self._http.send(h11.Data(data=data)) or b"")
                # From here on the end of the client's stream ends the response. A client that sent
                # it before gets the first piece.
                self._is_endless = response.is_endless
                if response.is_endless and self._has_client_ended:
                    return
                await self._drain()
                if monotonic() >= turn_ends_s:
                    await asyncio.sleep(0)
                    turn_ends_s = monotonic() + SLICE_S

    async def _drain(self) -> None:
        """Wait until the client has taken most of what is written."""
        if not self._may_write.is_set():
            self._expect_reading()
            await self._may_write.wait()
            self._clear_deadline()

    def _head(self, response: HttpResponse, *more: tuple[str, str]) -> bytes:
        """The head of a response, and its body if that is known."""
        headers = [("Content-Type", response.content_type), _NO_SNIFFING, *response.headers, *more]
        body = response.body
        if isinstance(body, bytes):
            headers.append(("Content-Length", str(len(body))))
        head = h11.Response(
            status_code=response.status.value,
            reason=response.status.phrase.encode(),
            headers=headers,
        )
        out = self._http.send(head) or b""
        if isinstance(body, bytes) and body and self._has_body:
            out += self._http.send(h11.Data(data=body)) or b""
        return out

    @property
    def _has_body(self) -> bool:
        """Whether the response to the current request has a body."""
        return self._request is None or self._request.method != b"HEAD"

    def _refuse(self, error: HttpError) -> None:
        """Answer a request that is invalid or incomplete, and end the connection."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = self._server.error_response(error, self._path)
            self._transport.write(self._head(response, ("Connection", "close")))
            self._end()
        else:
            self.abort()

    def _end(self) -> None:
        """Send the end of the stream, and drop what the client still sends until it closes."""
        self._is_ending = True
        self._expect_reading()
        if self._has_client_ended:
            self._transport.close()
        else:
            self._transport.write_eof()

    def _close(self) -> None:
        """Close when the client has taken what is written."""
        self._is_ending = True
        self._expect_reading()
        self._transport.close()

    # -- time -------------------------------------------------------------------------------------

    def _set_deadline(self) -> None:
        self._clear_deadline()
        self._timer = self._server.loop.call_later(self._server.timeout_s, self._time_out)

    def _clear_deadline(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        """Act on the deadline, which depends on what the client was to do until then."""
        if self._is_ending or self._serving is not None:
            # It was to take some of what is written. If it has, it gets the same time again.
            before_bytes = self._untaken_bytes
            self._expect_reading()
            if self._untaken_bytes >= before_bytes:
                self.abort()
        elif self._is_between_requests:
            # It was to begin a request. It has asked for nothing, so it gets no response.
            self._close()
        else:
            # It was to complete a request. It may never close, so the server does.
            self._refuse(HttpError(HTTPStatus.REQUEST_TIMEOUT, "no request came"))
            self._transport.close()

    def _expect_reading(self) -> None:
        """Set a deadline for the client to take some of what is written.

        What is in the socket's send buffer counts as not taken. The transport can write to this
        buffer only when much of it is free, so a slow client reads from it for a long time before
        the transport's own buffer shrinks.
        """
        queued = queued_bytes(self._transport.get_extra_info("socket").fileno())
        self._untaken_bytes = self._transport.get_write_buffer_size() + queued
        self._set_deadline()
