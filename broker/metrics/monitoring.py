"""Serves /metrics, /healthz and /readyz of one broker.

/metrics    all metrics, in Prometheus' text format
/healthz    200: the event loop of the process answers
/readyz     200 if the broker is ready; otherwise 503, and a line for each reason
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus

from odradek.broker.http.messages import (
    ErrorResponse,
    HttpRequest,
    HttpResponse,
    text_error,
    text_response,
)
from odradek.broker.http.routes import Route
from odradek.broker.http.server import HttpServer
from odradek.broker.network.listeners import BoundListener

from .observed import Observed
from .readiness import problems
from .rendering import CONTENT_TYPE, render


class Monitoring:
    """The HTTP server. `close` ends it and what measures, after the broker's own server."""

    def __init__(
        self,
        observed: Observed,
        bound: BoundListener,
        others: Iterable[Route] = (),
        error_response: ErrorResponse = text_error,
    ) -> None:
        """Listen on the bound port. `others` are served there, too. Raises OSError.

        `error_response` makes the response to a request that cannot be served.
        """
        self._observed = observed
        self._loop = observed.broker.loop
        self._rendering: asyncio.Task[bytes] | None = None
        pages = (
            Route("GET", "/metrics", self._metrics),
            Route("GET", "/healthz", self._health),
            Route("GET", "/readyz", self._readiness),
        )
        self._http = HttpServer(self._loop, bound, [*pages, *others], error_response=error_response)

    def note_stopping(self) -> None:
        """The broker begins to stop: it is not ready any more."""
        self._observed.is_stopping = True

    def close(self) -> None:
        """Stop answering."""
        self._http.close()
        self._observed.loop_delay.close()

    async def _metrics(self, _: HttpRequest) -> HttpResponse:
        """Clients that ask while the metrics are being rendered get the same text."""
        if self._rendering is None or self._rendering.done():
            slices = self._observed.broker.turns.slices
            self._rendering = slices.run(partial(render, self._observed))
        body = await asyncio.shield(self._rendering)
        return HttpResponse(HTTPStatus.OK, body, CONTENT_TYPE)

    async def _health(self, _: HttpRequest) -> HttpResponse:
        return text_response("ok\n")

    async def _readiness(self, _: HttpRequest) -> HttpResponse:
        missing = list(problems(self._observed))
        if missing:
            reasons = "".join(f"{problem}\n" for problem in missing)
            return text_response(reasons, HTTPStatus.SERVICE_UNAVAILABLE)
        return text_response("ready\n")
