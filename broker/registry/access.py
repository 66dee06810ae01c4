"""Who may use the registry.

If a listener of the broker requires a login, so does the registry: by HTTP Basic, with the names
and passwords of PLAIN and SCRAM. The authorizer decides by the topic `_schemas`: to read schemas a
client needs READ on it, to change something WRITE.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from http import HTTPStatus

from odradek.broker.broker import Broker
from odradek.broker.http.messages import HttpError, HttpRequest
from odradek.broker.http.origin import check_origin
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.security.principal import ANONYMOUS, USER, Principal
from odradek.broker.security.sasl.failed_logins import FailedLogins
from odradek.broker.security.sasl.passwords import Passwords
from odradek.broker.security.sasl.scram_credentials import credential_of

from .schema_log import TOPIC

_CHALLENGE = [("WWW-Authenticate", 'Basic realm="schema registry", charset="UTF-8"')]


class Access:
    """Checks requests."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._passwords = Passwords(
            lambda: broker.config,
            lambda mechanism, name, is_token: credential_of(
                broker.metadata, broker.security.token_credentials, mechanism, name, is_token
            ),
        )
        self._failures = FailedLogins(broker.clock.timer_ms)
        listeners = [*broker.config.advertised.values(), broker.config.registry_listener]
        self._own_names = {
            each.host.lower() for each in listeners if each is not None and each.host is not None
        }

    async def check(self, request: HttpRequest, operation: AclOperation | None) -> None:
        """Raise HttpError if the client may not do this. No operation: a login is enough."""
        check_origin(request, self._own_names)
        host = request.peer_host.removeprefix("::ffff:")
        principal = await self._principal(request, host)
        if operation is None:
            return
        allows = self._broker.security.authorizer.allows
        if not allows(principal, host, operation, ResourceType.TOPIC, TOPIC):
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                f"{principal} may not {operation.name} the topic {TOPIC}",
            )

    async def _principal(self, request: HttpRequest, host: str) -> Principal:
        if not self._passwords.are_required:
            return ANONYMOUS
        found = _credentials(request.headers.get("authorization", ""))
        if found is None:
            raise HttpError(HTTPStatus.UNAUTHORIZED, "Unauthorized", _CHALLENGE)
        if not await self._passwords.are_right(*found):
            self._failures.note(host, "odradek.registry.listener", "Basic", "wrong password")
            await asyncio.sleep(
                self._broker.config.connection_failed_authentication_delay_ms / 1000
            )
            raise HttpError(HTTPStatus.UNAUTHORIZED, "Unauthorized", _CHALLENGE)
        return Principal(USER, found[0])


def _credentials(header: str) -> tuple[str, str] | None:
    """Read the name and the password of an Authorization header."""
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return (name, password) if colon else None
