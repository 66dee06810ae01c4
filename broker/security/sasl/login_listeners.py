"""The listeners whose clients log in, made from the configuration.

A changed configuration applies to logins that begin later, also on connections that are open. If a
stored setting of a listener is not valid, the mechanisms of this listener stay as they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.security.session import Session
from odradek.config.broker_config import BrokerConfig
from odradek.config.dynamic_settings import INVALID
from odradek.config.errors import ConfigError
from odradek.config.listeners import Listener
from odradek.config.sasl import sasl_listener
from odradek.coordinator.runtime.timers import Now

from .authenticator import Authenticator, LoginListener
from .failed_logins import FailedLogins
from .scram_credential import CredentialOf, DecoyIterations
from .token_settings import IssuerKeys, KeySource

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
        decoy_iterations: DecoyIterations,
        clock: Callable[[], Now],
    ) -> None:
        """`credential_of` finds SCRAM credentials. Fetches keys of issuers. Raises ConfigError."""
        self._credential_of = credential_of
        self._decoy_iterations = decoy_iterations
        self._clock = clock
        self._failures = FailedLogins(lambda: clock().timer_ms)
        self._failure_delay_s = config.connection_failed_authentication_delay_ms / 1000
        self._listeners: dict[str, LoginListener] = {}
        self._not_applied: dict[str, str] = {}  # by listener: why its settings are not applied
        issuers: dict[KeySource, IssuerKeys] = {}
        for listener in _with_logins(config):
            made = self._made(config, listener, issuers, wait_for_keys=True)
            self._listeners[listener.name] = made

    def begin(self, session: Session) -> None:
        """Require a login of a new connection, if its listener uses SASL."""
        if not session.listener.security_protocol.uses_sasl:
            return
        name = session.listener.name
        session.principal = None
        session.guard = Authenticator(lambda: self._listeners[name], self._failures, self._clock)
        session.max_request_bytes = self._listeners[name].max_receive_bytes

    def check_settings(self, config: BrokerConfig) -> None:
        """Raise ConfigError if a listener's settings cannot be applied.

        An error that stored settings already have does not block other changes.
        """
        issuers = self._issuers()
        for listener in _with_logins(config):
            try:
                self._made(config, listener, issuers)
            except ConfigError as error:
                if str(error) != self._not_applied.get(listener.name):
                    raise ConfigError(f"{INVALID}: listener {listener.name}: {error}") from None

    def update_config(self, config: BrokerConfig) -> None:
        """Apply a changed configuration. `refresh_keys` fetches the keys of new issuers."""
        issuers = self._issuers()
        for listener in _with_logins(config):
            try:
                self._listeners[listener.name] = self._made(config, listener, issuers)
                self._not_applied.pop(listener.name, None)
            except ConfigError as error:
                self._not_applied[listener.name] = str(error)
                logger.error("listener %s keeps its logins: %s", listener.name, error)

    async def refresh_keys(self, disk: DiskExecutor) -> None:
        """Read or fetch the keys of token issuers, where that is due."""
        for keys in self._issuers().values():
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

        return LoginMechanisms(self._credential_of, self._decoy_iterations, self._clock)

    def _made(
        self,
        config: BrokerConfig,
        listener: Listener,
        issuers: dict[KeySource, IssuerKeys],
        *,
        wait_for_keys: bool = False,
    ) -> LoginListener:
        settings = sasl_listener(config, listener)
        return self._mechanisms.listener(
            settings, config.socket_request_max_bytes, issuers, wait_for_keys=wait_for_keys
        )

    def _issuers(self) -> dict[KeySource, IssuerKeys]:
        """The keys that the listeners use."""
        every = self._listeners.values()
        return {source: keys for each in every for source, keys in each.issuers.items()}


def _with_logins(config: BrokerConfig) -> Iterator[Listener]:
    return (each for each in config.open_listeners if each.security_protocol.uses_sasl)
