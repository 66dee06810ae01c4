"""Overrides changed by clients: checked, written to the metadata log, applied at once.

As with topics (topic_admin.py): decide and commit, apply, wait for the fsync, answer. What is
judged here, before the controller judges the rest, is what only the broker knows: its own settings,
and its loggers, whose levels are no records. What takes effect where:

    a topic's overrides     its logs; segments keep the shape that they were made with
    the broker's settings   ConfigInForce, and through it the logs of every topic, the connections'
                            limits, and whoever else listens there
    a group's               the coordinator looks them up whenever it needs one (group_configs.py)
    client metrics          kept and described

Kafka: ConfigAdminManager, DynamicConfigPublisher, TopicConfigHandler, DynamicLogConfig.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from odradek.config.dynamic_settings import usable_settings
from odradek.config.errors import ConfigError
from odradek.coordinator.metadata.config_changes import (
    Alteration,
    AlterOperation,
    ConfigResource,
    overrides_after,
)
from odradek.coordinator.metadata.config_settings import config_rules
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.errors import ApiError, ErrorCode

from . import log_levels

if TYPE_CHECKING:
    from odradek.broker.disk.log_sync import LogSync
    from odradek.config.broker_config import BrokerConfig
    from odradek.coordinator.metadata.controller import Controller
    from odradek.storage.log import PartitionLog
    from odradek.storage.log_manager import LogManager

    from .config_in_force import ConfigInForce

logger = logging.getLogger("odradek.config")

JAVA_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
STORED = frozenset(
    {
        ConfigResourceType.TOPIC,
        ConfigResourceType.BROKER,
        ConfigResourceType.GROUP,
        ConfigResourceType.CLIENT_METRICS,
    }
)


class ConfigAdmin:
    """Changes overrides, and sees to it that they take effect."""

    def __init__(
        self,
        *,
        in_force: ConfigInForce,
        controller: Controller,
        metadata_sync: LogSync,
        log_manager: LogManager,
        now_ms: Callable[[], int],
    ) -> None:
        self._in_force = in_force
        self._controller = controller
        self._configs = controller.metadata.configs
        self._sync = metadata_sync
        self._log_manager = log_manager
        self._now_ms = now_ms

    async def alter(
        self, alterations: Sequence[Alteration], *, validate_only: bool
    ) -> list[ApiError | None]:
        """Change each resource, or only check whether it could be: None or why not, in order."""
        counts = Counter(alteration.resource for alteration in alterations)
        stored: list[Alteration] = []
        refusals: dict[int, ApiError] = {}
        for index, alteration in enumerate(alterations):
            try:
                if counts[alteration.resource] > 1:
                    raise _invalid("Each resource must appear at most once.")
                if self._is_for_the_controller(alteration, validate_only):
                    stored.append(alteration)
            except ApiError as error:
                refusals[index] = error
        results = await self._commit(stored, validate_only)
        return [
            refusals.get(index, results.get(alteration.resource))
            for index, alteration in enumerate(alterations)
        ]

    async def _commit(
        self, alterations: Sequence[Alteration], validate_only: bool
    ) -> dict[ConfigResource, ApiError | None]:
        try:
            results = self._controller.alter_configs(
                alterations,
                config_rules(self._in_force.current),
                self._now_ms(),
                validate_only=validate_only,
            )
        except ApiError as error:
            return {alteration.resource: error for alteration in alterations}
        if not validate_only:
            self.apply([resource for resource, error in results.items() if error is None])
            await self._sync.sync()
        return results

    # -- what the broker judges -------------------------------------------------------------------

    def _is_for_the_controller(self, alteration: Alteration, validate_only: bool) -> bool:
        """Check what is the broker's to check, and do it if it concerns nobody else."""
        _check_changes(alteration)
        kind, name = alteration.resource
        if kind == ConfigResourceType.BROKER_LOGGER and not alteration.replaces:
            self._check_node(name, "node")
            log_levels.check_levels(alteration.changes)
            if not validate_only:
                log_levels.change_levels(alteration.changes)
                logger.warning("log levels: %s", _changes_as_text(alteration))
            return False
        if kind not in STORED:
            raise _invalid(f"Unknown resource type {kind}")
        if kind == ConfigResourceType.BROKER:
            self._check_broker(alteration)
        return True

    def _check_broker(self, alteration: Alteration) -> None:
        name = alteration.resource.name
        if name:
            self._check_node(name, "broker")
        stored = self._configs.of(ConfigResourceType.BROKER, name)
        usable, _ = usable_settings(stored, of_all_brokers=not name)
        after = overrides_after(usable, alteration, config_rules(self._in_force.current))
        try:
            self._in_force.check(name, after)
        except ConfigError as error:
            raise _invalid(str(error)) from None

    def _check_node(self, name: str, what: str) -> None:
        ours = self._controller.node_id
        if node_id_of(name) != ours:
            raise _invalid(f"Unexpected {what} id, expected {ours}, but received {name}")

    # -- what takes effect ------------------------------------------------------------------------

    def apply(self, changed: Iterable[ConfigResource]) -> None:
        """Let changes that the metadata has replayed take effect."""
        topics = set()
        for kind, name in changed:
            if kind == ConfigResourceType.TOPIC:
                topics.add(name)
            elif kind == ConfigResourceType.BROKER:
                self._in_force.refresh()
        if topics:
            logs = [log for log in self._all_logs() if log.topic in topics]
            self._update_logs(self._in_force.current, logs)
        for name in sorted(topics):
            logger.info("topic %s has the overrides %s", name, dict(self._configs.of_topic(name)))

    def update_config(self, config: BrokerConfig) -> None:
        """The broker's settings changed: topics inherit them."""
        self._update_logs(config, self._all_logs())

    def _all_logs(self) -> list[PartitionLog]:
        """Those on their way to another directory too."""
        futures = self._log_manager.futures.values()
        return [*self._log_manager.logs(), *(future.log for future in futures)]

    def _update_logs(self, broker: BrokerConfig, logs: Iterable[PartitionLog]) -> None:
        configs = {}
        for log in logs:
            if log.topic not in configs:
                overrides = self._configs.of_topic(log.topic)
                configs[log.topic] = broker.stored_topic_config(overrides)
            log.update_config(configs[log.topic])


def node_id_of(name: str) -> int:
    """The node that a resource's name means, as Java reads a number. Raises INVALID_REQUEST."""
    if not JAVA_INTEGER.fullmatch(name):
        raise _invalid(f"Node id must be an integer, but it is: {name}")
    return int(name)


def _check_changes(alteration: Alteration) -> None:
    names = [change.name for change in alteration.changes]
    if len(set(names)) < len(names):
        raise _invalid("Error due to duplicate config keys")
    nulls = [
        change.name
        for change in alteration.changes
        if change.value is None and change.operation != AlterOperation.DELETE
    ]
    if nulls:
        raise _invalid(f"Null value not supported for : {', '.join(nulls)}")


def _changes_as_text(alteration: Alteration) -> str:
    return ", ".join(f"{change.name}={change.value}" for change in alteration.changes)


def _invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
