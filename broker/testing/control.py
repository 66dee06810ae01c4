"""Lets a test in any language call what the methods of testing.Broker call.

`odradek serve --control` serves it:

    POST /call HTTP/1.1
    Authorization: Bearer TOKEN

    {"type": "Inject", "faults": [{"api": "PRODUCE", "error": "NOT_LEADER_OR_FOLLOWER"}]}

The types and fields are those of calls.py; bytes are in base64. The response is `{"result": ...}`,
or `{"error": "..."}` with a status of 400 or more. Calls are done one after another.

A call may do everything with the broker, whatever its listeners ask of clients. So it is served on
127.0.0.1 only, and needs the token, which is made at the start and is in the line that the process
prints for the one that has started it. Other users of the machine and pages in a browser do not
have it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from odradek.broker.broker import Broker
from odradek.broker.handlers import HANDLERS
from odradek.broker.http.messages import JSON, HttpError, HttpRequest, HttpResponse
from odradek.broker.http.routes import Route
from odradek.broker.http.server import HttpServer
from odradek.broker.network.listeners import BoundListener, bind_listeners
from odradek.config.broker_config import BrokerConfig
from odradek.config.listeners import Listener, SecurityProtocol

from . import calls
from .faults import Faults
from .leftover_clients import LeftoverClients
from .service import REFUSALS, Service, Setup

_LISTENER = Listener("CONTROL", "127.0.0.1", 0, SecurityProtocol.PLAINTEXT)
# Between two calls, a test may work or wait.
_TIMEOUT_S = 3600.0


class ControlledBroker:
    """A broker that serves, and the calls of a test to it."""

    def __init__(self, service: Service, bound: BoundListener) -> None:
        """Listen on the bound port, which `stop` releases."""
        self._service = service
        self._token = secrets.token_urlsafe()
        self._one_by_one = asyncio.Lock()
        self._decoder = msgspec.json.Decoder(calls.RunningCall)
        self._http = HttpServer(
            asyncio.get_running_loop(),
            bound,
            [Route("POST", "/call", self._call, calls.MAX_LINE_BYTES)],
            _TIMEOUT_S,
            _error_response,
        )
        self.addresses: Mapping[str, str] = {
            "control_url": f"http://127.0.0.1:{bound.port}/call",
            "control_token": self._token,
        }

    @classmethod
    async def start(cls, config: BrokerConfig) -> ControlledBroker:
        """Start a broker. Raises ConfigError, ListenError, DirectoryError, RefusedToStartError."""
        (bound,) = bind_listeners([_LISTENER])
        leftover_clients = LeftoverClients(HANDLERS)  # clients that stay connected over a reset
        setup = Setup(config, Faults(leftover_clients.handlers), leftover_clients)
        return cls(Service(setup, await setup.open()), bound)

    @property
    def broker(self) -> Broker:
        """The broker that runs now."""
        return self._service.broker

    async def stop(self) -> None:
        """Serve no more calls, and stop the broker cleanly."""
        self._http.close()
        await self._service.stop()

    async def _call(self, request: HttpRequest) -> HttpResponse:
        wanted = f"Bearer {self._token}".encode()
        if not secrets.compare_digest(request.headers.get("authorization", "").encode(), wanted):
            raise HttpError(
                HTTPStatus.UNAUTHORIZED,
                "the header must be Authorization: Bearer, and the control_token",
                [("WWW-Authenticate", "Bearer")],
            )
        try:
            call = self._decoder.decode(request.body)
            async with self._one_by_one:
                result = await self._service.serve(call)
        except REFUSALS as error:
            raise HttpError(HTTPStatus.BAD_REQUEST, str(error)) from error
        return HttpResponse(HTTPStatus.OK, msgspec.json.encode({"result": result}), JSON)


def _error_response(error: HttpError, _: str) -> HttpResponse:
    body = msgspec.json.encode({"error": str(error)})
    return HttpResponse(error.status, body, JSON, error.headers)
