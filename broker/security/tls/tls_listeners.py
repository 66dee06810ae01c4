"""The TLS of all listeners, and its reload: when a setting changes, and when a file does.

A change is taken over only if the new stores can be read and their certificates have the same
names. Otherwise the listener keeps what it has: a request to change a setting is refused,
and a changed file is reported in the log.

Kafka takes a changed file only when a setting is altered. Here the files are looked at as well,
every few seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.config.broker_config import BrokerConfig
from odradek.config.dynamic_settings import INVALID
from odradek.config.errors import ConfigError
from odradek.config.listener_settings import ListenerSettings
from odradek.config.listeners import Listener

from .listener_tls import ListenerTls, Source, source_of, texts_of, utc_of
from .stores import StoreUnreadableError

logger = logging.getLogger("odradek.tls")

# What was found, and the listener's TLS with that, new or in use, or why it is refused.
Change = tuple[Source, ListenerTls | ConfigError]


class TlsListeners:
    """The listeners that speak TLS. `of` returns what a new connection is to use."""

    def __init__(self, config: BrokerConfig, disk: DiskExecutor, now_ms: Callable[[], int]) -> None:
        """Read all stores. Raises ConfigError."""
        self._config = config
        self._disk = disk
        self._now_ms = now_ms
        self._listeners = [
            each for each in config.open_listeners if each.security_protocol.uses_tls
        ]
        self._tls: dict[str, ListenerTls] = {}
        self._refused: dict[str, tuple[Source, ConfigError]] = {}  # the last of each listener
        for listener in self._listeners:
            try:
                self._tls[listener.name] = ListenerTls(listener, self._settings(listener))
            except ConfigError as error:
                raise ConfigError(f"listener {listener.name}: {error}") from None
        self.warn_of_expiry()

    def of(self, listener_name: str) -> ListenerTls:
        """The certificates and rules of a listener, as they are now."""
        return self._tls[listener_name]

    # -- settings ---------------------------------------------------------------------------------

    def check_settings(self, config: BrokerConfig) -> None:
        """Raise ConfigError unless all listeners may change to this configuration.

        Only settings of TLS that change are checked: a file that has become unusable does not block
        other changes. Kafka: DynamicBrokerConfig.needsReconfiguration.
        """
        for listener in self._listeners:
            settings = config.of_listener(listener.name)
            if texts_of(settings) != texts_of(self._settings(listener)):
                try:
                    self._successor(listener, settings)
                except ConfigError as error:
                    raise ConfigError(f"{INVALID}: listener {listener.name}: {error}") from None

    def update_config(self, config: BrokerConfig) -> None:
        """Take over changed settings, and files that have changed.

        What the system could not read is left to `check_files`, which does not hold the loop.
        """
        self._config = config
        for listener in self._listeners:
            self._take_over(listener, self._change(listener, self._settings(listener)))

    # -- files ------------------------------------------------------------------------------------

    async def check_files(self) -> None:
        """Take over files that have changed. The disk threads read them."""
        config = self._config
        for listener in self._listeners:
            settings = self._settings(listener)
            change = await self._disk.run(self._change, listener, settings, retries_reads=True)
            if self._config is not config:
                return  # `update_config` has taken over newer settings and the files
            self._take_over(listener, change)

    def warn_of_expiry(self) -> None:
        """Log the certificates that expire soon."""
        for name, tls in self._tls.items():
            for line in tls.expiry_warnings(utc_of(self._now_ms())):
                logger.warning("listener %s: %s", name, line)

    def _settings(self, listener: Listener) -> ListenerSettings:
        return self._config.of_listener(listener.name)

    def _successor(self, listener: Listener, settings: ListenerSettings) -> ListenerTls:
        new = ListenerTls(listener, settings)
        self._tls[listener.name].check_successor(new, settings)
        return new

    def _change(
        self, listener: Listener, settings: ListenerSettings, *, retries_reads: bool = False
    ) -> Change:
        """Read the listener's files, if they or its settings have changed.

        They are not read again after they were taken over, or refused. With `retries_reads`, those
        that the system could not read are.
        """
        source, current = source_of(settings), self._tls[listener.name]
        if source == current.source:
            return source, current
        refused, reason = self._refused.get(listener.name, (None, None))
        is_retried = retries_reads and isinstance(reason, StoreUnreadableError)
        if reason is not None and source == refused and not is_retried:
            return source, reason
        try:
            return source, self._successor(listener, settings)
        except ConfigError as error:
            return source, error

    def _take_over(self, listener: Listener, change: Change) -> None:
        name, (source, new) = listener.name, change
        if isinstance(new, ConfigError):
            before, reported = self._refused.get(name, (None, None))
            self._refused[name] = source, new
            if source != before or str(new) != str(reported):
                logger.error("listener %s keeps its certificates: %s", name, new)
            return
        self._refused.pop(name, None)
        if new is self._tls[name]:
            return
        self._tls[name] = new
        logger.info("listener %s: certificates were loaded again: %s", name, new.describe())
        for line in new.expiry_warnings(utc_of(self._now_ms())):
            logger.warning("listener %s: %s", name, line)
