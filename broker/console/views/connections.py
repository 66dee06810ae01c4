"""The connections of clients: what the broker keeps about each of them, and the system's counts."""

from __future__ import annotations

from odradek.broker.console.calls import Call
from odradek.broker.console.endpoints import Endpoint
from odradek.broker.console.paging import PageRequest, page_of
from odradek.broker.console.view import View
from odradek.broker.network.connection import Connection
from odradek.broker.security.principal import ANONYMOUS
from odradek.broker.security.session import Session

EVERY_S = 2.0


class ClientConnection(View):
    """One connection.

    `client_id` and `software` are what the client has said in ApiVersions. `api_versions` are those
    of the requests that were timed: all of a quiet broker, of a busy one one in ten milliseconds.
    `bytes_in` and `bytes_out` were counted by the system since the connection was made, with those
    of TLS. `throttled_ms`: for how long its requests still wait because of a quota.
    """

    id: str
    listener: str
    address: str
    principal: str
    client_id: str | None
    software: str | None
    software_version: str | None
    connected_ms: int
    idle_ms: int
    api_versions: dict[str, int]
    bytes_in: int | None
    bytes_out: int | None
    throttled_ms: int


class Connections(View):
    """A page of the connections, the oldest first. `total` are those that match the search."""

    total: int
    connections: list[ClientConnection]


def connections(call: Call, request: PageRequest) -> Connections:
    """List connections. Needs DESCRIBE on the cluster."""
    call.check_cluster()
    matching = [
        each
        for each in call.sliced(call.observed.connections)
        if request.matches(_text_of(each.session))
    ]
    page = page_of(call, matching, lambda each: (each.opened_ms, str(each.session)), request)
    return Connections(
        total=len(matching), connections=[_described(call, each) for each in call.sliced(page)]
    )


def _text_of(session: Session) -> str:
    """What is searched."""
    software = " ".join(session.software or ())
    return f"{session} {session.principal or ''} {session.client_id or ''} {software}"


def _described(call: Call, connection: Connection) -> ClientConnection:
    session, clock = connection.session, call.observed.broker.clock
    timer_ms = clock.timer_ms()
    software, software_version = session.software or (None, None)
    bytes_in, bytes_out = connection.wire_bytes or (None, None)
    return ClientConnection(
        id=f"{session.listener.name}-{session}",
        listener=session.listener.name,
        address=str(session),
        principal=str(session.principal or ANONYMOUS),
        client_id=session.client_id,
        software=software,
        software_version=software_version,
        connected_ms=clock.now_ms() - (timer_ms - connection.opened_ms),
        idle_ms=max(timer_ms - connection.last_active_ms, 0),
        api_versions={
            key.display_name: version for key, version in (session.api_versions or {}).items()
        },
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        throttled_ms=connection.throttled_ms,
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        template="/connections",
        summary="The connections of clients.",
        handle=connections,
        request=PageRequest,
        response=Connections,
        every_s=EVERY_S,
    ),
)
