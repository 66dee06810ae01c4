"""The mechanisms of every listener that uses SASL, made from the configuration.

A changed configuration applies to logins that begin later. If a stored setting is not valid, the
mechanisms stay as they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.requests.session import Session
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.sasl import OAUTHBEARER, PLAIN, SaslListener, SaslMechanism, sasl_listeners
from odradek.coordinator.metadata.scram_mechanisms import ScramMechanism
from odradek.coordinator.timers import Now

from .authenticator import Authenticator, LoginListener, LoginMechanism
from .exchange import NewExchange
from .failed_logins import FailedLogins
from .oauthbearer import OAuthBearerExchange, Tokens
from .plain import PlainExchange, passwords_of
from .scram import CredentialOf, ScramExchange, UnknownNames
from .token_settings import IssuerKeys, KeySource, expected_claims, key_source
from .unsecured_tokens import UnsecuredTokens

logger = logging.getLogger("odradek.login")

_SCRAM = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}
R = TypeVar("R")


class LoginListeners:
    """Begins the login of each connection that needs one."""

    def __init__(
        self, config: BrokerConfig, credential_of: CredentialOf, clock: Callable[[], Now]
    ) -> None:
        """`credential_of` finds SCRAM credentials. Fetches keys of issuers. Raises ConfigError."""
        self._credential_of = credential_of
        self._clock = clock
        self._unknown = UnknownNames()
        self._failures = FailedLogins(self._timer_ms)
        self._issuers: dict[KeySource, IssuerKeys] = {}
        self._set(config, wait_for_keys=True)

    def begin(self, session: Session) -> None:
        """Require a login of a new connection, if its listener uses SASL."""
        if not session.listener.security_protocol.uses_sasl:
            return
        listener = self._listeners[session.listener.name]
        session.principal = None
        session.guard = Authenticator(listener, self._failures, self._clock)
        session.max_request_bytes = listener.max_receive_bytes

    def update_config(self, config: BrokerConfig) -> None:
        """Apply a changed configuration."""
        try:
            self._set(config, wait_for_keys=False)
        except ConfigError as error:
            logger.error("the SASL settings are not applied: %s", error)

    async def refresh_keys(self, disk: DiskExecutor) -> None:
        """Read or fetch the keys of token issuers, where that is due."""
        for keys in self._issuers.values():
            await disk.run(keys.refresh_if_due)

    async def delayed(self, session: Session, response: R) -> R:
        """Return the response to a failed login, after the configured delay. It is the last."""
        await asyncio.sleep(self._failure_delay_s)
        session.ends = True
        return response

    # -- from the configuration -------------------------------------------------------------------

    def _set(self, config: BrokerConfig, *, wait_for_keys: bool) -> None:
        found = sasl_listeners(config)
        issuers = {
            source: self._issuers.get(source) or self._open(source, wait=wait_for_keys)
            for listener in found
            for mechanism in listener.mechanisms
            if mechanism.verifies_signatures
            for source in [key_source(listener, mechanism)]
        }
        self._listeners = {
            listener.name: LoginListener(
                name=listener.name,
                mechanisms={
                    mechanism.name: LoginMechanism(
                        self._exchange_of(listener, mechanism, issuers), mechanism.max_reauth_ms
                    )
                    for mechanism in listener.mechanisms
                },
                max_receive_bytes=listener.max_receive_bytes,
                max_request_bytes=config.socket_request_max_bytes,
            )
            for listener in found
        }
        self._issuers = issuers
        self._failure_delay_s = config.connection_failed_authentication_delay_ms / 1000

    def _open(self, source: KeySource, *, wait: bool) -> IssuerKeys:
        # Imported here: most brokers do not need what it imports.
        from .issuer_keys import open_keys

        return open_keys(source, self._timer_ms, wait=wait)

    def _exchange_of(
        self,
        listener: SaslListener,
        mechanism: SaslMechanism,
        issuers: dict[KeySource, IssuerKeys],
    ) -> NewExchange:
        if mechanism.name == PLAIN:
            return partial(PlainExchange, passwords_of(mechanism.jaas.options))
        if mechanism.name == OAUTHBEARER:
            return partial(OAuthBearerExchange, self._tokens(listener, mechanism, issuers))
        scram = _SCRAM[mechanism.name]
        return partial(ScramExchange, scram, self._credential_of, self._unknown)

    def _tokens(
        self,
        listener: SaslListener,
        mechanism: SaslMechanism,
        issuers: dict[KeySource, IssuerKeys],
    ) -> Tokens:
        if not mechanism.verifies_signatures:
            return UnsecuredTokens(mechanism.jaas.options, self._wall_ms)
        # Imported here, because it takes a tenth of a second, and most brokers do not need it.
        from .signed_tokens import SignedTokens

        keys = issuers[key_source(listener, mechanism)]
        return SignedTokens(keys, expected_claims(listener), self._wall_ms)

    def _wall_ms(self) -> int:
        return self._clock().wall_ms

    def _timer_ms(self) -> int:
        return self._clock().timer_ms
