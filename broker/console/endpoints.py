"""An endpoint of the console's API: a handler, and the types of what it gets and returns.

A handler gets one struct. Its fields are the names in the path, and then the values of the query
(GET) or the fields of the JSON body. The same types make the OpenAPI file (openapi.py).

Every handler runs in slices (broker/turns/slices.py), as the requests of clients do. What it raises
is answered as {"error": ..., "message": ...}, with Kafka's name of the error if it has one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct

from odradek.broker.http.messages import JSON, HttpError, HttpRequest, HttpResponse
from odradek.broker.http.routes import Route
from odradek.protocol.errors import ApiError, ErrorCode

from .calls import Call

PREFIX = "/api/v1"

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


class Nothing(Struct, frozen=True):
    """A request without fields."""


class Failure(Struct, frozen=True):
    """What a request that cannot be served is answered with."""

    error: str
    message: str


class Endpoint(Struct, frozen=True, kw_only=True):
    """One method of one path below PREFIX. `summary` is for the OpenAPI file.

    `handle` takes a Call and a `request`, and returns a `response` or an awaitable of one.
    """

    method: str
    template: str
    summary: str
    handle: Callable[[Call, Any], Any]
    response: type[Struct]
    request: type[Struct] = Nothing


# Runs a handler in slices, for the principal of the HTTP request.
Run = Callable[[HttpRequest, Callable[[Call], Awaitable[Any]]], Awaitable[Any]]


def route_of(endpoint: Endpoint, run: Run) -> Route:
    """Make the endpoint a path of the HTTP server."""
    return Route(endpoint.method, f"{PREFIX}{endpoint.template}", partial(_answer, endpoint, run))


async def _answer(endpoint: Endpoint, run: Run, request: HttpRequest) -> HttpResponse:
    try:
        wanted = _request_of(endpoint, request)
        body = await run(request, partial(_serve, endpoint, wanted))
    except HttpError as error:
        return _failure(error.status, error.status.phrase, str(error))
    except ApiError as error:
        return _failure(status_of(error.code), error.code.name, error.message or error.code.name)
    return HttpResponse(HTTPStatus.OK, body, JSON)


async def _serve(endpoint: Endpoint, wanted: Struct, call: Call) -> bytes:
    response = endpoint.handle(call, wanted)
    if isinstance(response, Awaitable):
        response = await response
    return msgspec.json.encode(response)


def _request_of(endpoint: Endpoint, request: HttpRequest) -> Struct:
    """Make the handler's struct of a request. Raises HttpError."""
    fields: dict[str, Any] = {}
    try:
        if endpoint.method == "GET":
            fields = {name: values[-1] for name, values in request.query.items()}
        elif request.body:
            fields = msgspec.json.decode(request.body, type=dict[str, Any])
        # From the path and the query all values are text.
        wanted: Struct = msgspec.convert(
            {**fields, **request.parameters}, endpoint.request, strict=endpoint.method != "GET"
        )
    except msgspec.MsgspecError as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from None
    return wanted


def _failure(status: HTTPStatus, error: str, message: str) -> HttpResponse:
    return HttpResponse(status, msgspec.json.encode(Failure(error, message)), JSON)


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
