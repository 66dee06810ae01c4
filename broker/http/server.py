"""An HTTP server on a bound listener, on the broker's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from odradek.broker.network.acceptor import Acceptor
from odradek.broker.network.listeners import BoundListener

from .connection import HttpConnection
from .messages import ErrorResponse, text_error
from .routes import Route, Routes

MAX_CONNECTIONS = 128
# These get 503. More are cut, because a refused client may take TIMEOUT_S to close.
MAX_REFUSED_CONNECTIONS = 32
TIMEOUT_S = 10.0
BACKLOG = 16
# A connection may wait for its client's next request so long, even if others need its place.
KEPT_S = 1.0


class HttpServer:
    """Listens from its creation to `close`.

    `timeout_s` is how long a request may take to arrive. A client may also ask for nothing, or take
    nothing of what is sent to it, for this long.
    `error_response` makes the response to a request that cannot be served. `kept_s`: see KEPT_S.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        bound: BoundListener,
        routes: Iterable[Route],
        timeout_s: float = TIMEOUT_S,
        error_response: ErrorResponse = text_error,
        kept_s: float = KEPT_S,
    ) -> None:
        """Listen on the bound port, which `close` releases. Raises OSError."""
        self.loop = loop
        self.routes = Routes(routes)
        self.timeout_s = timeout_s
        self.error_response = error_response
        self._kept_s = kept_s
        self.connections: set[HttpConnection] = set()
        connect = partial(HttpConnection, self)
        self._acceptors = [Acceptor(loop, sock, connect, BACKLOG) for sock in bound.sockets]

    def admit(self, connection: HttpConnection) -> str | None:
        """Count a new connection. Returns why it is refused, if it is."""
        self.connections.add(connection)
        if len(self.connections) > MAX_CONNECTIONS + MAX_REFUSED_CONNECTIONS:
            connection.abort()
            return None
        if len(self.connections) <= MAX_CONNECTIONS or self._make_room():
            return None
        return "too many connections"

    def _make_room(self) -> bool:
        """Close the connection that has waited longest for a request, if one has for KEPT_S."""
        waiting = [
            (since_s, number, connection)
            for number, connection in enumerate(self.connections)
            if (since_s := connection.waits_since_s) is not None
        ]
        if not waiting:
            return False
        since_s, _, longest = min(waiting)
        if self.loop.time() - since_s < self._kept_s:
            return False
        longest.give_up_place()
        return True

    def forget(self, connection: HttpConnection) -> None:
        """Forget a connection that is closed."""
        self.connections.discard(connection)

    def close(self) -> None:
        """Stop listening, and cut all connections."""
        for acceptor in self._acceptors:
            acceptor.close()
        for connection in list(self.connections):
            connection.abort()
