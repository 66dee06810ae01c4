"""Who sends an HTTP request: its host and origin are checked, and it logs in as Kafka's clients do.

If a listener of the broker requires a login, so does HTTP: by Basic, with the names and passwords
of PLAIN and SCRAM. A wrong password is answered after as long as on Kafka's listeners.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from http import HTTPStatus

from odradek.broker.broker import Broker
from odradek.broker.security.principal import ANONYMOUS, USER, Principal
from odradek.broker.security.sasl.failed_logins import FailedLogins
from odradek.broker.security.sasl.passwords import Passwords
from odradek.broker.security.sasl.scram_credentials import credential_of

from .messages import HttpError, HttpRequest
from .origin import check_origin


class HttpLogins:
    """Checks the requests of one HTTP listener."""

    def __init__(self, broker: Broker, key: str, realm: str) -> None:
        """`key` is the listener's key of the configuration. Browsers show `realm`."""
        self._broker = broker
        self._key = key
        self._challenge = [("WWW-Authenticate", f'Basic realm="{realm}", charset="UTF-8"')]
        self._passwords = Passwords(
            lambda: broker.config,
            lambda mechanism, name, is_token: credential_of(
                broker.metadata, broker.security.token_credentials, mechanism, name, is_token
            ),
            lambda mechanism, number: broker.metadata.scram_credentials.decoy_iterations(
                mechanism, number
            ),
        )
        self._failures = FailedLogins(broker.clock.timer_ms)
        config = broker.config
        listeners = [*config.advertised.values(), config.http_listener, config.registry_listener]
        hosts = {each.host for each in listeners if each is not None and each.host is not None}
        self._own_names = {each.lower() for each in hosts.union(config.odradek_http_hosts)}

    @property
    def are_required(self) -> bool:
        """Whether clients must log in."""
        return self._passwords.are_required

    async def principal_of(self, request: HttpRequest) -> Principal:
        """Return who the client is. Raises HttpError."""
        check_origin(request, self._own_names)
        if not self._passwords.are_required:
            return ANONYMOUS
        credentials = _credentials(request.headers.get("authorization", ""))
        if credentials is None:
            raise self._refusal()
        if not await self._passwords.are_right(*credentials):
            self._failures.note(request.peer_host, self._key, "Basic", "wrong password")
            await asyncio.sleep(
                self._broker.config.connection_failed_authentication_delay_ms / 1000
            )
            raise self._refusal()
        return Principal(USER, credentials[0])

    def _refusal(self) -> HttpError:
        return HttpError(HTTPStatus.UNAUTHORIZED, "Unauthorized", self._challenge)


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
