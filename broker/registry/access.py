"""Who may use the registry.

The authorizer decides by the topic `_schemas`: to read schemas a client needs READ on it, to change
something WRITE. Clients log in as http/logins.py says.
"""

from __future__ import annotations

from http import HTTPStatus

from odradek.broker.broker import Broker
from odradek.broker.http.logins import HttpLogins
from odradek.broker.http.messages import HttpError, HttpRequest
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.registry.schemas import TOPIC


class Access:
    """Checks requests."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._logins = HttpLogins(broker, "odradek.registry.listener", "schema registry")

    async def check(self, request: HttpRequest, operation: AclOperation | None) -> None:
        """Raise HttpError if the client may not do this. No operation: a login is enough."""
        principal = await self._logins.principal_of(request)
        if operation is None:
            return
        allows = self._broker.security.authorizer.allows
        if not allows(principal, request.peer_host, operation, ResourceType.TOPIC, TOPIC):
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                f"{principal} may not {operation.name} the topic {TOPIC}",
            )
