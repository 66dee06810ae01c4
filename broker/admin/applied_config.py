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

from odradek.broker.common.effective_config import EffectiveConfig
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.config_changes import ConfigResource
from odradek.coordinator.metadata.configs import ConfigResourceType, Configs
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.storage.log_manager import LogManager

from .subscriptions import Subscriptions

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

    def apply(self, changed: Iterable[ConfigResource], step: Step = no_step) -> None:
        """Apply the changes of these resources. All logs of a topic get the same one."""
        names: dict[int, set[str]] = {}
        for kind, name in stepping(changed, step):
            names.setdefault(kind, set()).add(name)
        if ConfigResourceType.BROKER in names:
            self._effective_config.refresh()
        if ConfigResourceType.CLIENT_METRICS in names:
            self._subscriptions.update()
        topics = names.get(ConfigResourceType.TOPIC, set())
        for name in stepping(sorted(topics), step):
            self._update_logs(self._effective_config.current, name)
            logger.info("topic %s has the overrides %s", name, dict(self._configs.of_topic(name)))

    def update_config(self, config: BrokerConfig) -> None:
        """Apply changed settings of the broker to all logs; topics inherit them."""
        for topic in {log.topic for log in self._log_manager.logs()}:
            self._update_logs(config, topic)

    def _update_logs(self, broker: BrokerConfig, topic: str) -> None:
        """Apply a topic's overrides to its logs, and to their copies that are being moved."""
        logs = self._log_manager.of_topic(topic).values()
        if not logs:
            return
        config = broker.stored_topic_config(self._configs.of_topic(topic))
        for log in logs:
            log.update_config(config)
            future = self._log_manager.futures.get(log.key)
            if future is not None:
                future.log.update_config(config)
