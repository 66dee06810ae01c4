"""The listeners whose clients log in, made from the configuration.

A changed configuration applies to logins that begin later, also on connections that are open. If a stored setting is not valid, the
mechanisms stay as they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.security.session import Session
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import ConfigError
from odradek.config.sasl import sasl_listeners
from odradek.coordinator.runtime.timers import Now

from .authenticator import Authenticator, LoginListener
from .failed_logins import FailedLogins
from .scram_credential import CredentialOf, IterationsLikeAUser

if TYPE_CHECKING:
    from .login_mechanisms import LoginMechanisms  # imported only if it is used

logger = logging.getLogger("odradek.login")

R = TypeVar("R")


class LoginListeners:
    """Begins the login of each connection that needs one."""

    def __init__(
        self,
        config: BrokerConfig,
        credential_of: CredentialOf,
        iterations_like_a_user: IterationsLikeAUser,
        clock: Callable[[], Now],
    ) -> None:
        """`credential_of` finds SCRAM credentials. Fetches keys of issuers. Raises ConfigError."""
        self._credential_of = credential_of
        self._iterations_like_a_user = iterations_like_a_user
        self._clock = clock
        self._failures = FailedLogins(lambda: clock().timer_ms)
        self._listeners: dict[str, LoginListener] = {}
        self._set(config, wait_for_keys=True)

    def begin(self, session: Session) -> None:
        """Require a login of a new connection, if its listener uses SASL."""
        if not session.listener.security_protocol.uses_sasl:
            return
        name = session.listener.name
        session.principal = None
        session.guard = Authenticator(lambda: self._listeners[name], self._failures, self._clock)
        session.max_request_bytes = self._listeners[name].max_receive_bytes

    def update_config(self, config: BrokerConfig) -> None:
        """Apply a changed configuration."""
        try:
            self._set(config, wait_for_keys=False)
        except ConfigError as error:
            logger.error("the SASL settings are not applied: %s", error)

    async def refresh_keys(self, disk: DiskExecutor) -> None:
        """Read or fetch the keys of token issuers, where that is due."""
        for keys in self._mechanisms.issuers.values() if self._listeners else ():
            await disk.run(keys.refresh_if_due)

    async def delayed(self, session: Session, response: R) -> R:
        """Return the response to a failed login, after the configured delay. It is the last."""
        await asyncio.sleep(self._failure_delay_s)
        session.ends = True
        return response

    @cached_property
    def _mechanisms(self) -> LoginMechanisms:
        # Imported here: a broker without SASL need not wait for it at its start.
        from .login_mechanisms import LoginMechanisms

        return LoginMechanisms(self._credential_of, self._iterations_like_a_user, self._clock)

    def _set(self, config: BrokerConfig, *, wait_for_keys: bool) -> None:
        found = sasl_listeners(config)
        if found:
            self._listeners = self._mechanisms.listeners(
                found, config.socket_request_max_bytes, wait_for_keys=wait_for_keys
            )
        self._failure_delay_s = config.connection_failed_authentication_delay_ms / 1000
