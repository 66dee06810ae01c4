"""The shards of `__consumer_offsets`: which records the groups replay."""

import logging

from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.any_group.joined_offsets import joined_offsets
from odradek.coordinator.runtime.record_codec import CoordinatorRecordCodec
from odradek.coordinator.runtime.shards import CoordinatorShards, Shard
from odradek.protocol.records.consumer_offsets import RECORD_TYPES
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

from .group_state import GroupState

logger = logging.getLogger("odradek.groups")

GroupShard = Shard[GroupState]
GroupShards = CoordinatorShards[GroupState]


def group_shards(settings: GroupSettings) -> GroupShards:
    """Make the shards, none of which is open. Records that are not replayed are not decoded."""
    replayed = {n: types for n, types in RECORD_TYPES.items() if types[0] in GroupState.REPLAY_OF}
    return CoordinatorShards(
        CONSUMER_OFFSETS_TOPIC,
        GroupState,
        CoordinatorRecordCodec(replayed),
        compression=settings.offsets_topic_compression,
        logger=logger,
        join=joined_offsets,
    )
