"""The console of one broker, as routes of its HTTP server."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import TypeVar

import msgspec

from odradek.broker.http.logins import HttpLogins
from odradek.broker.http.messages import JSON, HttpError, HttpRequest, HttpResponse, text_error
from odradek.broker.http.own_version import OWN_VERSION
from odradek.broker.http.routes import Route
from odradek.broker.metrics.observed import Observed
from odradek.broker.requests.dispatch import Dispatcher
from odradek.broker.security.principal import Principal
from odradek.broker.security.session import Session
from odradek.broker.turns.slices import Slices

from .calls import Call
from .endpoints import (
    PREFIX,
    TOKEN_HEADER,
    Endpoint,
    Nothing,
    answer,
    answer_in_pieces,
    failure_response,
    request_of,
)
from .groups.positions import Positions
from .openapi import describe
from .page_files import PageFile, page_files
from .places import Places
from .recent_lines import RecentLines
from .sorted_topics import SortedTopics
from .survey import Survey
from .view import View
from .views import ENDPOINTS
from .watching import CONTENT_TYPE, SharedViews, events

T = TypeVar("T")

DECISIONS_KEPT = 100_000  # of the authorizer: some pages show what a client may see of all topics
# Half of the server's connections (http/server.py); other requests take theirs for a short time.
MAX_STREAMS = 64
MAX_STREAMS_OF_ONE = 48
# Of which each may hold a whole record, or many, until its client has taken them.
MAX_EXPORTS = 4


class Me(View):
    """The client, and what it needs for changes: `token` is the value of TOKEN_HEADER."""

    principal: str
    login_required: bool
    read_only: bool
    token: str
    version: str
    cluster_id: str


class Console:
    """Serves the console's pages and its API.

    A request that changes something carries a token, which only pages of this server can read: a
    page of another site can make a browser send requests, but not with a header of its own.
    """

    def __init__(self, observed: Observed, dispatcher: Dispatcher) -> None:
        self._observed = observed
        self._broker = observed.broker
        self._dispatcher = dispatcher
        self._authorizer = observed.broker.security.authorizer.with_own_cache(DECISIONS_KEPT)
        self._topics = SortedTopics(observed.broker.metadata.topics)
        self._survey = Survey(observed.broker)
        self._positions = Positions(self._broker.loop, self._broker.turns.slices)
        self._logins = HttpLogins(self._broker, "odradek.http.listener", "odradek")
        self._shared = SharedViews(self._broker.loop)
        self._streams = Places("event streams", MAX_STREAMS, MAX_STREAMS_OF_ONE)
        self._exports = Places("exports and whole values", MAX_EXPORTS, MAX_EXPORTS)
        # Its clients may do what those of this listener may. Delegation tokens need a login.
        listeners = self._broker.config.open_listeners
        secured = [each for each in listeners if each.security_protocol.uses_sasl]
        self._listener = [*secured, *listeners][0]
        self._token = secrets.token_urlsafe(24)
        self._recent_lines = RecentLines()
        self._keyless = count()
        self._recent_lines.install()
        client = Endpoint(
            method="GET", template="/me", summary="Who is logged in.", handle=self._me, response=Me
        )
        self._endpoints = [client, *ENDPOINTS]
        self._description = msgspec.json.encode(describe(self._endpoints, OWN_VERSION))

    def close(self) -> None:
        """End what it does between requests."""
        self._recent_lines.remove()
        self._positions.close()

    def routes(self) -> list[Route]:
        """All paths of the console."""
        endpoints = [
            Route(each.method, f"{PREFIX}{each.template}", partial(self._serve, each))
            for each in self._endpoints
        ]
        pages = [Route("GET", each.path, partial(self._serve_page, each)) for each in page_files()]
        return [*endpoints, Route("GET", f"{PREFIX}/openapi.json", self._openapi), *pages]

    def error_response(self, error: HttpError, path: str) -> HttpResponse:
        """The response to a request that reaches no endpoint, or whose endpoint has failed."""
        return failure_response(error) if path.startswith(f"{PREFIX}/") else text_error(error, path)

    async def _serve_page(self, page: PageFile, request: HttpRequest) -> HttpResponse:
        await self._logins.principal_of(request)
        return page.response(request)

    async def _openapi(self, request: HttpRequest) -> HttpResponse:
        await self._logins.principal_of(request)
        return HttpResponse(HTTPStatus.OK, self._description, JSON)

    def _me(self, call: Call, _: Nothing) -> Me:
        return Me(
            principal=str(call.principal),
            login_required=self._logins.are_required,
            read_only=self._broker.config.odradek_console_read_only,
            token=self._token,
            version=OWN_VERSION,
            cluster_id=self._broker.metadata.cluster_id,
        )

    async def _serve(self, endpoint: Endpoint, request: HttpRequest) -> HttpResponse:
        try:
            principal = await self._logins.principal_of(request)
            if endpoint.changes:
                self._check_change(request)
            fields = request_of(endpoint, request)
        except HttpError as error:
            return failure_response(error)
        run = partial(self._run, principal, request.peer_host)
        if endpoint.stream is not None:
            pieces = self._exports.hold(request.peer_host, endpoint.stream(fields, run))
            return await answer_in_pieces(pieces, endpoint.content_type, probe=endpoint.probe)
        if endpoint.every_s is not None and CONTENT_TYPE in request.headers.get("accept", ""):
            client = principal, request.peer_host
            stream = events(endpoint, fields, run, self._shared, client)
            pieces = self._streams.hold(request.peer_host, stream)
            return await answer_in_pieces(pieces, CONTENT_TYPE, is_endless=True)
        return await answer(endpoint, fields, run)

    def _check_change(self, request: HttpRequest) -> None:
        """Raise HttpError if this request may not change anything."""
        if self._broker.config.odradek_console_read_only:
            text = "the console is read-only here (odradek.console.read.only)"
            raise HttpError(HTTPStatus.FORBIDDEN, text)
        token = request.headers.get(TOKEN_HEADER, "")
        if not hmac.compare_digest(token.encode("latin-1"), self._token.encode()):
            text = f"a request that changes something needs the header {TOKEN_HEADER}"
            raise HttpError(HTTPStatus.FORBIDDEN, f"{text}; its value is in {PREFIX}/me")

    async def _run(
        self, principal: Principal, host: str, work: Callable[[Call], Awaitable[T]]
    ) -> T:
        """Run a handler in slices, with the permissions of a client."""
        session = Session(self._listener, (host, 0))
        session.principal = principal
        return await self._broker.turns.slices.run(partial(self._call, session, work))

    async def _call(
        self, session: Session, work: Callable[[Call], Awaitable[T]], slices: Slices
    ) -> T:
        call = Call(
            session=session,
            slices=slices,
            observed=self._observed,
            dispatcher=self._dispatcher,
            authorizer=self._authorizer,
            topics=self._topics,
            survey=self._survey,
            positions=self._positions,
            recent_lines=self._recent_lines,
            keyless=self._keyless,
        )
        return await work(call)
