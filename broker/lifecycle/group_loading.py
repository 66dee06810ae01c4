"""Loads the group coordinator from the logs of `__consumer_offsets` that are online.

A log may come later than the broker's start (it was still recovered, or its disk was full), and it
may be lost (its directory failed, or a sync). Its groups are served only while it is online.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from odradek.broker.admin.topic_admin import TopicAdmin
from odradek.broker.network.group_turns import GroupTurns
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.consumer_groups.group_configs import ConsumerGroupConfigs
from odradek.coordinator.group_coordinator import GroupCoordinator, NewIds
from odradek.coordinator.group_settings import ConsumerGroupSettings, GroupSettings
from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.configs import ConfigResourceType, Configs
from odradek.coordinator.metadata.topics import Topic
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.timers import Now
from odradek.protocol.primitives import random_uuid, random_uuid_with_dashes, uuid_text
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

logger = logging.getLogger("odradek")


def load_group_configs(config: BrokerConfig, configs: Configs) -> ConsumerGroupConfigs:
    """The settings of consumer groups. Stored ones that cannot be applied are logged."""
    group_configs = ConsumerGroupConfigs(
        ConsumerGroupSettings.of(config), partial(configs.of, ConfigResourceType.GROUP)
    )
    for line in group_configs.warnings(configs.names(ConfigResourceType.GROUP)):
        logger.warning("%s", line)
    return group_configs


def create_group_coordinator(
    config: BrokerConfig,
    loop: asyncio.AbstractEventLoop,
    now_ms: Callable[[], int],
    *,
    turns: GroupTurns,
    topic_admin: TopicAdmin,
    metadata: ClusterMetadata,
    consumer_configs: ConsumerGroupConfigs,
) -> GroupCoordinator:
    """A coordinator without groups; `now_ms` is the wall clock."""
    return GroupCoordinator(
        GroupSettings.of(config),
        loop=loop,
        clock=lambda: Now(now_ms(), time.monotonic_ns() // 1_000_000),
        after_arrivals=turns.after_arrivals,
        new_ids=NewIds(random_uuid_with_dashes, lambda: uuid_text(random_uuid())),
        ensure_offsets_topic=topic_admin.ensure_offsets_topic,
        topics=ClusterTopics(metadata),
        consumer_configs=consumer_configs,
    )


class GroupPartitions:
    """Opens and closes the coordinator's partitions as the logs of their topic come and go.

    Logs of other topics are ignored. Deleted topics lose their offsets.
    """

    def __init__(
        self, groups: GroupCoordinator, log_manager: LogManager, metadata: ClusterMetadata
    ) -> None:
        self._groups = groups
        self._log_manager = log_manager
        self._topics = metadata.topics

    def load(self) -> None:
        """Replay the logs that are online; drop offsets of topics that no longer exist."""
        topic = self._topics.get(CONSUMER_OFFSETS_TOPIC)
        if topic is not None:
            self.topic_created(topic)
            self._groups.delete_offsets_of_missing_topics(self._topics.by_id)

    def topic_created(self, topic: Topic) -> None:
        """Open every partition whose log is online."""
        if topic.name == CONSUMER_OFFSETS_TOPIC:
            logs = (self._log_manager.find(topic.name, index) for index in topic.partitions)
            online = [log for log in logs if log is not None and log.is_online]
            self._groups.open_topic(online, len(topic.partitions))

    def topic_deleted(self, topic: Topic) -> None:
        """Delete the groups' offsets in a topic."""
        self._groups.on_topics_deleted([(topic.name, topic.id)])

    def log_found(self, log: PartitionLog) -> None:
        """Open the partition of a log that has come online."""
        if log.topic == CONSUMER_OFFSETS_TOPIC:
            self._groups.partition_online(log, self._topics.by_id)

    def log_lost(self, log: PartitionLog) -> None:
        """Close the partition of a log that is offline, or whose last records did not sync."""
        if log.topic == CONSUMER_OFFSETS_TOPIC:
            self._groups.partition_offline(log.partition)
