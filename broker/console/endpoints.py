"""An endpoint of the console's API: a handler, and the types of what it gets and returns.

A handler gets one struct. Its fields are the names in the path, and then the values of the query
(GET) or the fields of the JSON body. The same types make the OpenAPI file (openapi.py).

Every handler runs in slices (broker/turns/slices.py), as the requests of clients do. What it raises
is answered as {"error": ..., "message": ...}, with Kafka's name of the error if it has one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct

from odradek.broker.http.json_bodies import decoded
from odradek.broker.http.messages import JSON, HttpError, HttpRequest, HttpResponse
from odradek.protocol.errors import ApiError, ErrorCode

from .calls import Call
from .view import View

PREFIX = "/api/v1"
TOKEN_HEADER = "x-odradek-token"  # of requests that change something; its value is in /me
MAX_VALUES = 20_000  # of a body: the partitions of a topic are most. A few milliseconds

_NOT_FOUND = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.RESOURCE_NOT_FOUND,
    }
)
_CONFLICT = frozenset({ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NON_EMPTY_GROUP})


class Nothing(View):
    """A request without fields, or a response that says only that it is done."""


class Failure(View):
    """The response to a request that cannot be served."""

    error: str
    message: str


# Runs a handler in slices, for the client of an HTTP request.
Run = Callable[[Callable[[Call], Awaitable[Any]]], Awaitable[Any]]
# Makes the pieces of a body.
Stream = Callable[[Any, Run], AsyncGenerator[bytes, None]]


def not_called(_: Call, __: View) -> View:
    """The handler of an endpoint with a `stream`."""
    raise NotImplementedError


class Endpoint(Struct, frozen=True, kw_only=True):
    """One method of one path below PREFIX. `summary` is for the OpenAPI file.

    `handle` takes a Call and a `request`, and returns a `response` or an awaitable of one.
    `every_s`: a client that accepts text/event-stream gets the response again and again, this long
    after the one before, if it has changed (watching.py). `next_request` makes the request for the
    next one from a request and its response; without it, the same request is served again.
    `stream` makes a body of another `content_type`, piece by piece, in place of `handle`: it gets
    the request and a Run. `probe` is that of its response (http/messages.py).
    `changes`: a GET asks, all others change something.
    """

    method: str
    template: str
    summary: str
    handle: Callable[[Call, Any], Any] = not_called
    response: type[View] = Nothing
    request: type[View] = Nothing
    every_s: float | None = None
    next_request: Callable[[Any, Any], Any] | None = None
    stream: Stream | None = None
    content_type: str = JSON
    probe: bytes = b""

    @property
    def changes(self) -> bool:
        """Whether it may change something."""
        return self.method != "GET"


async def answer(endpoint: Endpoint, request: View, run: Run) -> HttpResponse:
    """Serve one request."""
    try:
        _, body = await run(lambda call: serve(endpoint, request, call))
    except (HttpError, ApiError) as error:
        return failure_response(error)
    return HttpResponse(HTTPStatus.OK, body, JSON)


async def answer_in_pieces(
    pieces: AsyncGenerator[bytes, None],
    content_type: str,
    *,
    is_endless: bool = False,
    probe: bytes = b"",
) -> HttpResponse:
    """A response in pieces. If the first cannot be made, the response says why."""
    try:
        first = await anext(pieces, b"")
    except (HttpError, ApiError) as error:
        return failure_response(error)
    body = _all_pieces(first, pieces)
    return HttpResponse(HTTPStatus.OK, body, content_type, is_endless=is_endless, probe=probe)


async def _all_pieces(
    first: bytes, others: AsyncGenerator[bytes, None]
) -> AsyncGenerator[bytes, None]:
    async with aclosing(others):
        if first:
            yield first
        async for piece in others:
            yield piece


async def serve(endpoint: Endpoint, request: View, call: Call) -> tuple[View, bytes]:
    """Return the response, also as JSON. Raises ApiError, HttpError."""
    response = endpoint.handle(call, request)
    if isinstance(response, Awaitable):
        response = await response
    return response, msgspec.json.encode(response)


def request_of(endpoint: Endpoint, request: HttpRequest) -> View:
    """Make the handler's struct of a request. Raises HttpError."""
    fields: dict[str, Any] = {}
    try:
        if not endpoint.changes:
            fields = {name: values[-1] for name, values in request.query.items()}
        elif request.body:
            fields = decoded(request.body, MAX_VALUES, dict[str, Any])
        # From the path and the query all values are text.
        converted: View = msgspec.convert(
            {**fields, **request.parameters}, endpoint.request, strict=False
        )
    except msgspec.MsgspecError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None
    except RecursionError:
        raise HttpError(HTTPStatus.BAD_REQUEST, "the body is nested too deeply") from None
    return converted


def failure_response(error: HttpError | ApiError) -> HttpResponse:
    """The response to a request that cannot be served."""
    if isinstance(error, HttpError):
        return HttpResponse(error.status, failure_body(error), JSON, error.headers)
    return HttpResponse(status_of(error.code), failure_body(error), JSON)


def failure_body(error: HttpError | ApiError) -> bytes:
    """A Failure as JSON."""
    if isinstance(error, HttpError):
        name, message = error.status.name, str(error)
    else:
        name, message = error.code.name, error.message
    return msgspec.json.encode(Failure(error=name, message=message or name))


def status_of(code: ErrorCode) -> HTTPStatus:
    """The status of the response to a request that Kafka refuses with an error."""
    if code.name.endswith("AUTHORIZATION_FAILED"):
        return HTTPStatus.FORBIDDEN
    if code in _NOT_FOUND:
        return HTTPStatus.NOT_FOUND
    if code in _CONFLICT:
        return HTTPStatus.CONFLICT
    if code is ErrorCode.UNKNOWN_SERVER_ERROR:
        return HTTPStatus.INTERNAL_SERVER_ERROR
    return HTTPStatus.BAD_REQUEST
