"""Creates the coordinators, with what they need of the broker. They hold no data yet."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from odradek.broker.disk.log_sync import LogSync
from odradek.broker.turns.group_turns import GroupTurns
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.groups.group_configs_by_type import GroupConfigsByType
from odradek.coordinator.groups.group_coordinator import GroupCoordinator, ModernGroupParts, NewIds
from odradek.coordinator.metadata.cluster_metadata import ClusterMetadata
from odradek.coordinator.metadata.configs import ConfigResourceType, Configs
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.features import TRANSACTION_VERSION
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.timers import Now
from odradek.coordinator.share_state.settings import ShareCoordinatorSettings
from odradek.coordinator.share_state.share_coordinator import ShareCoordinator
from odradek.coordinator.transactions.marker_writer import MarkerWriter
from odradek.coordinator.transactions.settings import TransactionSettings
from odradek.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import random_uuid, random_uuid_with_dashes, uuid_text
from odradek.storage.log_manager import LogManager

logger = logging.getLogger("odradek")


def load_group_configs(config: BrokerConfig, configs: Configs) -> GroupConfigsByType:
    """The settings of groups. Stored ones that cannot be applied are logged."""
    group_configs = GroupConfigsByType.of(config, partial(configs.of, ConfigResourceType.GROUP))
    for line in group_configs.warnings(configs.names(ConfigResourceType.GROUP)):
        logger.warning("%s", line)
    return group_configs


def create_marker_writer(
    metadata: ClusterMetadata, log_manager: LogManager, groups: GroupCoordinator
) -> MarkerWriter:
    """What writes the markers of transactions."""

    def partition_exists(name: str, partition: int) -> bool:
        topic = metadata.topics.get(name)
        return topic is not None and partition in topic.partitions

    return MarkerWriter(
        partition_exists=partition_exists, find_log=log_manager.get, groups=groups.offsets
    )


def create_transaction_coordinator(
    config: BrokerConfig,
    loop: asyncio.AbstractEventLoop,
    clock: Callable[[], Now],
    *,
    turns: GroupTurns,
    controller: Controller,
    metadata_sync: LogSync,
    markers: MarkerWriter,
) -> TransactionCoordinator:
    """A coordinator without transactions."""
    metadata = controller.metadata

    def new_producer_id(now_ms: int) -> int:
        # A transaction's record must not name an id that a power cut can take back: it would be
        # given out again. Kafka: RPCProducerIdManager gives the same error while a block comes.
        producer_id = controller.producer_ids.take(now_ms)
        if metadata_sync.start() is not None:
            raise ApiError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "a block of producer ids is being synced"
            )
        return producer_id

    return TransactionCoordinator(
        TransactionSettings.of(config),
        loop=loop,
        clock=clock,
        after_arrivals=turns.after_arrivals,
        markers=markers,
        new_producer_id=new_producer_id,
        transaction_version=partial(metadata.features.level, TRANSACTION_VERSION),
    )


def create_share_coordinator(
    config: BrokerConfig,
    loop: asyncio.AbstractEventLoop,
    clock: Callable[[], Now],
    *,
    turns: GroupTurns,
    topics: ClusterTopics,
) -> ShareCoordinator:
    """A coordinator without states."""
    return ShareCoordinator(
        ShareCoordinatorSettings.of(config),
        loop=loop,
        clock=clock,
        after_arrivals=turns.after_arrivals,
        partition_count=topics.partition_count,
    )


def create_group_coordinator(
    config: BrokerConfig,
    loop: asyncio.AbstractEventLoop,
    clock: Callable[[], Now],
    *,
    turns: GroupTurns,
    metadata: ClusterMetadata,
    topics: ClusterTopics,
    modern: ModernGroupParts,
) -> GroupCoordinator:
    """A coordinator without groups."""
    return GroupCoordinator(
        GroupSettings.of(config),
        loop=loop,
        clock=clock,
        after_arrivals=turns.after_arrivals,
        new_ids=NewIds(random_uuid_with_dashes, lambda: uuid_text(random_uuid())),
        topics=topics,
        topic_ids=metadata.topics.by_id,
        modern=modern,
    )
