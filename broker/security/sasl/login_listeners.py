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
from .unsecured_tokens import UnsecuredTokens

logger = logging.getLogger("odradek.login")

_SCRAM = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}
R = TypeVar("R")


class LoginListeners:
    """Begins the login of each connection that needs one."""

    def __init__(
        self, config: BrokerConfig, credential_of: CredentialOf, clock: Callable[[], Now]
    ) -> None:
        """`credential_of` finds SCRAM credentials. Raises ConfigError."""
        self._credential_of = credential_of
        self._clock = clock
        self._unknown = UnknownNames()
        self._failures = FailedLogins(lambda: clock().timer_ms)
        self._set(config)

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
            self._set(config)
        except ConfigError as error:
            logger.error("the SASL settings are not applied: %s", error)

    async def delayed(self, session: Session, response: R) -> R:
        """Return the response to a failed login, after the configured delay. It is the last."""
        await asyncio.sleep(self._failure_delay_s)
        session.ends = True
        return response

    def _set(self, config: BrokerConfig) -> None:
        listeners = {
            item.name: self._listener(item, config.socket_request_max_bytes)
            for item in sasl_listeners(config)
        }
        self._listeners = listeners
        self._failure_delay_s = config.connection_failed_authentication_delay_ms / 1000

    def _listener(self, listener: SaslListener, max_request_bytes: int) -> LoginListener:
        return LoginListener(
            name=listener.name,
            mechanisms={
                mechanism.name: LoginMechanism(
                    self._exchange_of(mechanism), mechanism.max_reauth_ms
                )
                for mechanism in listener.mechanisms
            },
            max_receive_bytes=listener.max_receive_bytes,
            max_request_bytes=max_request_bytes,
        )

    def _exchange_of(self, mechanism: SaslMechanism) -> NewExchange:
        if mechanism.name == PLAIN:
            return partial(PlainExchange, passwords_of(mechanism.jaas.options))
        if mechanism.name == OAUTHBEARER:
            return partial(OAuthBearerExchange, self._tokens(mechanism))
        scram = _SCRAM[mechanism.name]
        return partial(ScramExchange, scram, self._credential_of, self._unknown)

    def _tokens(self, mechanism: SaslMechanism) -> Tokens:
        return UnsecuredTokens(mechanism.jaas.options, lambda: self._clock().wall_ms)
