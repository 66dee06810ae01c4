"""Applies configuration overrides that the metadata has replayed. Where they take effect:

    of a topic              in its logs; existing segments keep their size
    of the broker           in EffectiveConfig, which passes them to the logs of every topic and to
                            all others that follow it
    of a group              in the coordinator, which reads them at each use (group_configs.py)
    of client metrics       in the subscriptions of clients (telemetry/)

Kafka: DynamicConfigPublisher, TopicConfigHandler, DynamicLogConfig.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from odradek.broker.telemetry.subscriptions import Subscriptions
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.config_changes import ConfigResource
from odradek.coordinator.metadata.configs import ConfigResourceType, Configs
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager

from .effective_config import EffectiveConfig

logger = logging.getLogger("odradek.config")


class AppliedConfig:
    """Applies overrides to this process's logs and broker settings."""

    def __init__(
        self,
        effective_config: EffectiveConfig,
        configs: Configs,
        log_manager: LogManager,
        subscriptions: Subscriptions,
    ) -> None:
        self._effective_config = effective_config
        self._configs = configs
        self._log_manager = log_manager
        self._subscriptions = subscriptions

    def apply(self, changed: Iterable[ConfigResource]) -> None:
        """Apply the changes of these resources."""
        names: dict[int, set[str]] = {}
        for kind, name in changed:
            names.setdefault(kind, set()).add(name)
        if ConfigResourceType.BROKER in names:
            self._effective_config.refresh()
        if ConfigResourceType.CLIENT_METRICS in names:
            self._subscriptions.update()
        topics = names.get(ConfigResourceType.TOPIC, set())
        if topics:
            logs = [log for log in self._all_logs() if log.topic in topics]
            self._update_logs(self._effective_config.current, logs)
        for name in sorted(topics):
            logger.info("topic %s has the overrides %s", name, dict(self._configs.of_topic(name)))

    def update_config(self, config: BrokerConfig) -> None:
        """Apply changed settings of the broker to all logs; topics inherit them."""
        self._update_logs(config, self._all_logs())

    def _all_logs(self) -> list[PartitionLog]:
        """All logs, with the copies that are being moved to another directory."""
        futures = self._log_manager.futures.values()
        return [*self._log_manager.logs(), *(future.log for future in futures)]

    def _update_logs(self, broker: BrokerConfig, logs: Iterable[PartitionLog]) -> None:
        configs = {}
        for log in logs:
            if log.topic not in configs:
                overrides = self._configs.of_topic(log.topic)
                configs[log.topic] = broker.stored_topic_config(overrides)
            log.update_config(configs[log.topic])
