"""The group coordinator: its parts, and what happens when its shards are loaded and unloaded.

    members    JoinGroup, SyncGroup, heartbeats, LeaveGroup     classic_groups/, consumer_groups/,
                                                                share_groups/, streams_groups/
    offsets    OffsetCommit, OffsetFetch, OffsetDelete          offset_requests
    retention  offsets that expire, or whose topic is deleted   offset_expiry
    admin      requests that list, describe and delete groups   group_state

Each part finds the group's shard, lets the code named at the right decide, and commits the decision
to the shard's journal, without an await in between. All parts share the shards, and one queue of
deadlines with its alarm.

Kafka: GroupCoordinatorService, CoordinatorRuntime.
"""

import asyncio
from collections.abc import Callable, Container, Iterable
from typing import NamedTuple

from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.alarm import Alarm
from odradek.coordinator.runtime.in_turns import InTurns
from odradek.coordinator.runtime.load_queue import LoadQueue
from odradek.coordinator.runtime.timers import Now
from odradek.storage.log import PartitionLog

from .classic_group_service import ClassicGroupService
from .consumer_group_service import ConsumerGroupService
from .group_admin import GroupAdmin
from .group_configs_by_type import GroupConfigsByType
from .group_decisions import GroupDecisions, Slicer
from .group_shards import GroupShard, group_shards
from .member_requests import MemberRequests, MemberServices
from .offset_retention import OffsetRetention
from .offset_service import OffsetService
from .share_group_service import ShareGroupService, ShareStates
from .streams_group_service import StreamsGroupService


class NewIds(NamedTuple):
    """Make the random part of a classic member's id, and the id of a consumer group's member."""

    uuid: Callable[[], str]
    consumer_member_id: Callable[[], str]


class ModernGroupParts(NamedTuple):
    """The settings of groups by type, and where the state of share groups is stored.

    `slicer` runs decisions that take long. `when_share_states_exist` calls its argument when the
    topic of `share_states` exists.
    """

    configs: GroupConfigsByType
    slicer: Slicer
    share_states: ShareStates
    when_share_states_exist: Callable[[Callable[[], None]], None]


class GroupCoordinator:
    """All groups of this broker."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], Now],
        after_arrivals: Callable[[Callable[[], None]], None],
        new_ids: NewIds,
        topics: ClusterTopics,
        topic_ids: Container[bytes],
        modern: ModernGroupParts,
    ) -> None:
        """`after_arrivals` calls its argument when the requests that have arrived are served.
        `topic_ids`: the ids of the topics that exist now, whenever it is asked.

        Raises ConfigError for an unknown assignor.
        """
        self._clock = clock
        self.shards = group_shards(settings)
        self.alarm = Alarm(loop, clock, after_arrivals)
        decisions = GroupDecisions(self.shards, self.alarm, modern.slicer, clock)
        self._loads = LoadQueue(loop, self._on_shard_online)
        self._classic = ClassicGroupService(
            settings,
            shards=self.shards,
            deadlines=self.alarm.deadlines,
            new_uuid=new_ids.uuid,
            in_turns=InTurns(loop.call_soon),
            decisions=decisions,
        )
        self.consumer_groups = ConsumerGroupService(
            shards=self.shards,
            deadlines=self.alarm.deadlines,
            topics=topics,
            configs=modern.configs.consumer,
            loop=loop,
            new_member_id=new_ids.consumer_member_id,
            classic_rebalance=self._classic.rebalances,
            decisions=decisions,
        )
        self.streams_groups = StreamsGroupService(
            shards=self.shards,
            deadlines=self.alarm.deadlines,
            topics=topics,
            configs=modern.configs.streams,
            decisions=decisions,
        )
        self.share_groups = ShareGroupService(
            shards=self.shards,
            deadlines=self.alarm.deadlines,
            topics=topics,
            configs=modern.configs.share,
            loop=loop,
            decisions=decisions,
            states=modern.share_states,
            when_states_exist=modern.when_share_states_exist,
        )
        self.members = MemberRequests(
            settings,
            shards=self.shards,
            services=MemberServices(
                self._classic, self.consumer_groups, self.share_groups, self.streams_groups
            ),
            decisions=decisions,
            loop=loop,
        )
        self.offsets = OffsetService(
            settings,
            shards=self.shards,
            classic=self._classic,
            alarm=self.alarm,
            clock=clock,
            topic_ids=topic_ids,
        )
        self.retention = OffsetRetention(
            settings,
            shards=self.shards,
            deadlines=self.alarm.deadlines,
            loop=loop,
            clock=clock,
            topic_ids=topic_ids,
        )
        self.admin = GroupAdmin(self.shards, self.share_groups, clock)

    def open_topic(self, logs: Iterable[PartitionLog], partition_count: int) -> None:
        """Load the groups from the topic's partitions. A partition without a log is not served.

        This blocks until all are loaded: at start no client is connected yet, and the logs of a new
        topic are empty.
        """
        for shard in self.shards.open_topic(logs, partition_count):
            self._on_shard_loaded(shard)
            self.retention.delete_of_missing_topics(shard)
        now = self._clock()
        self.retention.start(now)
        self.alarm.set(now)

    def close(self) -> None:
        """Stop serving: parked requests are answered NOT_COORDINATOR."""
        self.alarm.cancel()
        self.retention.stop()
        for shard in self.shards.serving():
            self._on_shard_unloaded(shard)
        self.shards.close()

    def partition_online(self, log: PartitionLog) -> None:
        """Load the groups of a partition whose log has become readable, and serve them then.

        Partitions are loaded one after another, a slice in each turn of the loop.
        """
        self._loads.add(self.shards.load_in_slices(log))

    def partition_offline(self, partition: int) -> None:
        """Stop serving the groups of a partition whose log is offline."""
        shard = self.shards.unavailable(partition)
        if shard is not None:
            self._on_shard_unloaded(shard)

    def _on_shard_online(self, shard: GroupShard) -> None:
        self._on_shard_loaded(shard)
        self.alarm.set(self._clock())
        self.retention.delete_of_missing_topics_in_slices(shard)

    def _on_shard_loaded(self, shard: GroupShard) -> None:
        now = self._clock()
        self.consumer_groups.on_shard_loaded(shard, now)
        self.streams_groups.on_shard_loaded(shard, now)
        self.share_groups.on_shard_loaded(shard, now)
        self._classic.on_shard_loaded(shard, now)

    def _on_shard_unloaded(self, shard: GroupShard) -> None:
        self._classic.on_shard_unloaded(shard)
        self.consumer_groups.on_shard_unloaded(shard)
        self.streams_groups.on_shard_unloaded(shard)
        self.share_groups.on_shard_unloaded(shard)
