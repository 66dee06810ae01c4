"""The listeners whose clients log in, made from the configuration.

A changed configuration applies to logins that begin later, also on connections that are open. If a
stored setting of a listener is not valid, the mechanisms of this listener stay as they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.security.session import Session
from odradek.config.broker_config import BrokerConfig
from odradek.config.dynamic_settings import INVALID
from odradek.config.errors import ConfigError
from odradek.config.listeners import Listener
from odradek.config.sasl import sasl_listener, texts_of, with_logins
from odradek.coordinator.runtime.timers import Now

from .authenticator import Authenticator, LoginListener
from .failed_logins import FailedLogins
from .scram_credential import CredentialOf, DecoyIterations
from .token_settings import IssuerKeys, KeySource

if TYPE_CHECKING:
    from .login_mechanisms import LoginMechanisms  # imported only if it is used

logger = logging.getLogger("odradek.login")

Texts = Mapping[str, str | None]
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
        self._config = config
        self._listeners: dict[str, LoginListener] = {}
        # By listener: what the last check has made, for `update_config` to use.
        self._checked: dict[str, tuple[Texts, LoginListener]] = {}
        self._not_applied: dict[str, str] = {}  # by listener: why its settings are not applied
        issuers: dict[KeySource, IssuerKeys] = {}
        for listener in with_logins(config):
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
        """Raise ConfigError if changed settings of a listener cannot be applied.

        A listener whose settings stay is not checked: a file that has become unusable does not
        block other changes. Nor does an error that the listener's stored settings already have.
        """
        self._checked = {}
        issuers = self._issuers()
        for listener in with_logins(config):
            name, texts = listener.name, _texts(config, listener)
            if texts == _texts(self._config, listener):
                continue
            try:
                self._checked[name] = texts, self._made(config, listener, issuers)
            except ConfigError as error:
                if str(error) != self._not_applied.get(name):
                    raise ConfigError(f"{INVALID}: listener {name}: {error}") from None

    def update_config(self, config: BrokerConfig) -> None:
        """Apply a changed configuration. `refresh_keys` fetches the keys of new issuers.

        Settings that are not applied are tried again.
        """
        before, self._config = self._config, config
        checked, self._checked = self._checked, {}
        issuers = self._issuers(made for _, made in checked.values())
        for listener in with_logins(config):
            name, texts = listener.name, _texts(config, listener)
            if texts == _texts(before, listener) and name not in self._not_applied:
                continue
            try:
                checked_texts, made = checked.get(name, (None, None))
                if made is None or checked_texts != texts:
                    made = self._made(config, listener, issuers)
                self._listeners[name] = made
                self._not_applied.pop(name, None)
            except ConfigError as error:
                self._not_applied[name] = str(error)
                logger.error("listener %s keeps its logins: %s", name, error)

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

    def _issuers(self, others: Iterable[LoginListener] = ()) -> dict[KeySource, IssuerKeys]:
        """The keys that the listeners use, and those of `others`."""
        every = chain(self._listeners.values(), others)
        return {source: keys for each in every for source, keys in each.issuers.items()}


def _texts(config: BrokerConfig, listener: Listener) -> Texts:
    return texts_of(config.of_listener(listener.name))
