"""Applies configuration overrides that the metadata has replayed. Where they take effect:

    of a topic              in its logs; existing segments keep their size
    of the broker           in EffectiveConfig, which calls its on_change callbacks, and in the
                            logs of every topic
    of a group              in the coordinator, which reads them at each use (group_configs.py)
    of client metrics       in the subscriptions of clients (telemetry/)

Kafka: DynamicConfigPublisher, TopicConfigHandler, DynamicLogConfig.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from odradek.broker.common.effective_config import EffectiveConfig
from odradek.config.topic_config import TopicConfig
from odradek.coordinator.metadata.config_changes import ConfigResource
from odradek.coordinator.metadata.configs import ConfigResourceType, Configs
from odradek.coordinator.metadata.topic_settings import stored_config
from odradek.coordinator.runtime.steps import Step, no_step, sorted_in_steps, stepping
from odradek.storage.log_manager import LogManager

from .subscriptions import Subscriptions

logger = logging.getLogger("odradek.config")


class AppliedConfig:
    """Applies overrides to the logs and the broker's settings."""

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
        # Grows with each change. `_update_logs` compares it after a step, to see that its config is
        # out of date.
        self._change_count = 0

    def apply(self, changed: Iterable[ConfigResource], step: Step = no_step) -> None:
        """Apply the stored settings of these resources. All logs of a topic get the same config."""
        self._change_count += 1
        names: dict[int, set[str]] = {}
        for kind, name in stepping(changed, step):
            names.setdefault(kind, set()).add(name)
        if ConfigResourceType.BROKER in names:
            self.refresh(step)
        if ConfigResourceType.CLIENT_METRICS in names:
            self._subscriptions.update(names[ConfigResourceType.CLIENT_METRICS], step)
        topics = names.get(ConfigResourceType.TOPIC, set())
        for name in stepping(sorted_in_steps(topics, step), step):
            self._update_logs(name, step)
            logger.info("topic %s has the overrides %s", name, dict(self._configs.of_topic(name)))

    def refresh(self, step: Step = no_step) -> None:
        """Apply the broker's stored settings. If they changed, all topics inherit them."""
        before = self._effective_config.current
        self._effective_config.refresh(step)
        if self._effective_config.current is before:
            return
        self._change_count += 1
        for topic in dict.fromkeys(log.topic for log in stepping(self._log_manager.logs(), step)):
            self._update_logs(topic, step)

    def _update_logs(self, topic: str, step: Step) -> None:
        """Apply a topic's overrides to its logs, and to their copies that are being moved."""
        config, change_count = self._config_of(topic), self._change_count
        for log in stepping(self._log_manager.of_topic(topic).values(), step):
            if change_count != self._change_count:  # another change was applied in the step
                config, change_count = self._config_of(topic), self._change_count
            log.update_config(config)
            future = self._log_manager.futures.get(log.key)
            if future is not None:
                future.log.update_config(config)

    def _config_of(self, topic: str) -> TopicConfig:
        return stored_config(self._effective_config.current, self._configs, topic)
