"""What a handler of an HTTP request gets and returns."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus

from msgspec import Struct

PLAIN = "text/plain; charset=utf-8"
JSON = "application/json"


class HttpRequest(Struct, frozen=True, kw_only=True):
    """A whole request.

    `path` begins with a slash and is as the client wrote it, still percent-encoded; `parameters`
    are the decoded parts of it that the route names. `query` has the values of each name.
    The names in `headers` are in lower case; of a header that is repeated the last one counts.
    """

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes
    peer_host: str
    parameters: Mapping[str, str] = {}


class HttpResponse(Struct, frozen=True):
    """A response. A `body` that is an iterator is sent piece by piece, as the client takes it.

    `is_endless`: it ends when the client sends no more; other clients may wait for its end.
    `probe`: what is sent in place of an empty piece to a client that has sent the end of its
    stream. It may be gone, and that is noticed only by what is sent.
    """

    status: HTTPStatus
    body: bytes | AsyncGenerator[bytes, None] = b""
    content_type: str = PLAIN
    headers: Iterable[tuple[str, str]] = ()
    is_endless: bool = False
    probe: bytes = b""


class HttpError(Exception):
    """A request that cannot be served: the status of the response, and its text."""

    def __init__(
        self, status: HTTPStatus, reason: str, headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.headers = headers


def text_error(error: HttpError, _: str) -> HttpResponse:
    """The response to a request that cannot be served, as one line of text."""
    return HttpResponse(error.status, f"{error}\n".encode(), PLAIN, error.headers)


Handler = Callable[[HttpRequest], Awaitable[HttpResponse]]
# Makes the response to a request that cannot be served, for its path; empty: it is not known.
ErrorResponse = Callable[[HttpError, str], HttpResponse]


def text_response(text: str, status: HTTPStatus = HTTPStatus.OK) -> HttpResponse:
    """A response of plain text."""
    return HttpResponse(status, text.encode())
