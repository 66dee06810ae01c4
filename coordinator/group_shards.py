"""The shards of `__consumer_offsets`: which records the groups replay, and how writes fail."""

import logging
from collections.abc import Mapping
from types import MappingProxyType

from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.consumer_offsets import RECORD_TYPES
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC

from .group_settings import GroupSettings
from .group_state import GroupState
from .other_group import OTHER_GROUP_KEYS
from .record_codec import CoordinatorRecordCodec
from .shards import CoordinatorShards, Shard

logger = logging.getLogger("odradek.groups")

GroupShard = Shard[GroupState]
GroupShards = CoordinatorShards[GroupState]

# By error of an append: the error that the client gets. Kafka: CoordinatorOperationExceptionHelper.
APPEND_ERRORS: Mapping[ErrorCode, ErrorCode] = MappingProxyType(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
        ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


def group_shards(settings: GroupSettings) -> GroupShards:
    """Make the shards, none of which is open. Records that are not replayed are not decoded."""
    replayed = {n: types for n, types in RECORD_TYPES.items() if types[0] in GroupState.REPLAY_OF}
    return CoordinatorShards(
        CONSUMER_OFFSETS_TOPIC,
        GroupState,
        CoordinatorRecordCodec(replayed, OTHER_GROUP_KEYS),
        compression=settings.offsets_topic_compression,
        append_errors=APPEND_ERRORS,
        logger=logger,
    )
