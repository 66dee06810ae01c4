"""The coordinators of a broker, and the share-partitions that it leads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial

from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.broker.common.clock import Clock
from odradek.broker.disk.log_sync import LogSync
from odradek.broker.shares.dead_letter_queues import DeadLetterQueues
from odradek.broker.shares.shares import Shares
from odradek.broker.shares.waiting import Delay, WaitingRead
from odradek.broker.startup.coordinator_logs import CoordinatorLogs
from odradek.broker.startup.coordinators import (
    create_group_coordinator,
    create_marker_writer,
    create_share_coordinator,
    create_transaction_coordinator,
    load_group_configs,
)
from odradek.broker.turns.group_slices import GroupSlices
from odradek.broker.turns.turns import Turns
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.groups.group_coordinator import ModernGroupParts
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.features import GROUP_VERSION, SHARE_VERSION, STREAMS_VERSION
from odradek.coordinator.metadata.topics import Topic
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_names import SHARE_GROUP_STATE_TOPIC

logger = logging.getLogger("odradek")


class Coordinators:
    """`load` replays their internal topics into them."""

    def __init__(  # noqa: PLR0913 # the parts of the broker that it connects
        self,
        config: BrokerConfig,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        *,
        turns: Turns,
        log_manager: LogManager,
        controller: Controller,
        metadata_sync: LogSync,
        background: BackgroundTasks,
        ensure_topic: Callable[[str], Awaitable[object]],
        find_log: Callable[[bytes, int], PartitionLog],
        create_queues: Callable[[ShareGroupConfigs], DeadLetterQueues],
    ) -> None:
        """`ensure_topic` creates an internal topic, `find_log` finds a log by its topic's id.

        Both raise ApiError.
        """
        metadata = controller.metadata
        self.group_configs = load_group_configs(config, metadata.configs)
        topics = ClusterTopics(metadata)
        self.share_states = create_share_coordinator(
            config, loop, clock.now, turns=turns.group, topics=topics
        )
        self.groups = create_group_coordinator(
            config,
            loop,
            clock.now,
            turns=turns.group,
            metadata=metadata,
            topics=topics,
            modern=ModernGroupParts(
                self.group_configs,
                GroupSlices(turns.slices),
                self.share_states,
                self._when_share_states_exist,
            ),
        )
        self.markers = create_marker_writer(metadata, log_manager, self.groups)
        self.transactions = create_transaction_coordinator(
            config,
            loop,
            clock.now,
            turns=turns.group,
            controller=controller,
            metadata_sync=metadata_sync,
            markers=self.markers,
        )
        self.queues = create_queues(self.group_configs.share)
        self._create_shares = partial(
            Shares,
            loop=loop,
            clock=clock.now,
            after_arrivals=turns.group.after_arrivals,
            states=self.share_states,
            configs=self.group_configs.share,
            slices=turns.slices,
            queues=self.queues,
            create_lost_state=self.groups.share_groups.create_lost_state,
        )
        self.shares = self._create_shares(find_log=find_log)
        self._shares_of_nodes: list[Shares] = []  # of a played cluster
        self.groups.share_groups.on_state_reset.add(self._share_state_reset)
        self.waiting_share_fetches: set[WaitingRead | Delay] = set()
        # The groups first: transactions that are completed at start write markers to their logs.
        self.logs = CoordinatorLogs(
            [self.groups, self.transactions, self.share_states], log_manager, metadata.topics
        )
        self._features = metadata.features
        self._background = background
        self._ensure_topic = ensure_topic

    @property
    def serves_consumer_groups(self) -> bool:
        """Whether settings and metadata both enable the consumer protocol (KIP-848)."""
        enabled = self.group_configs.consumer.broker.is_enabled
        return enabled and self._features.level(GROUP_VERSION) > 0

    @property
    def serves_streams_groups(self) -> bool:
        """Whether settings and metadata both enable the protocol of streams groups (KIP-1071)."""
        enabled = self.group_configs.streams.broker.is_enabled
        return enabled and self._features.level(STREAMS_VERSION) > 0

    @property
    def serves_share_groups(self) -> bool:
        """Whether the metadata enables share groups (KIP-932)."""
        return self._features.level(SHARE_VERSION) > 0

    def topics_deleted(self, topics: Sequence[Topic]) -> None:
        """Forget deleted topics, all of a request at once: each step looks through all groups."""
        for topic in topics:
            self.logs.topic_deleted(topic)
        ids = frozenset(topic.id for topic in topics)
        self.groups.retention.on_topics_deleted([(topic.name, topic.id) for topic in topics])
        self.groups.share_groups.on_topics_deleted()
        self.share_states.on_topics_deleted(ids)
        for shares in (self.shares, *self._shares_of_nodes):
            shares.topics_deleted(ids)

    def add_shares(self, find_log: Callable[[bytes, int], PartitionLog]) -> Shares:
        """The share-partitions that a node of a played cluster leads; `find_log` finds those."""
        shares = self._create_shares(find_log=find_log)
        self._shares_of_nodes.append(shares)
        return shares

    def remove_shares(self, shares: Shares) -> None:
        """Forget the share-partitions of a node that has ended."""
        self._shares_of_nodes.remove(shares)
        shares.close()

    def groups_deleted(self, group_ids: Collection[str]) -> None:
        """Forget what is known about deleted groups."""
        for group_id in group_ids:
            self.queues.forget(group_id)

    def _share_state_reset(self, key: SharePartitionKey) -> None:
        for shares in (self.shares, *self._shares_of_nodes):
            shares.state_reset(key)

    async def finish_archiving(self) -> None:
        """Wait for what is being written to dead-letter queues, because the broker stops."""
        all_shares = (self.shares, *self._shares_of_nodes)
        await asyncio.gather(*(shares.finish_archiving() for shares in all_shares))

    def release_all(self) -> None:
        """Answer the requests that wait, because the broker stops."""
        for waiting in tuple(self.waiting_share_fetches):
            waiting.release()
        self.logs.close()

    def _when_share_states_exist(self, then: Callable[[], None]) -> None:
        """Call `then` when `__share_group_state` exists, or cannot be created."""

        async def create_and_call() -> None:
            try:
                await self._ensure_topic(SHARE_GROUP_STATE_TOPIC)
            except ApiError as error:
                logger.error("%s cannot be created: %s", SHARE_GROUP_STATE_TOPIC, error.message)
            then()

        if self.share_states.shards.is_open:
            then()
        else:
            self._background.start(create_and_call())
