"""The records of `__consumer_offsets`: offsets and classic groups, and the table of all types.

The records of other group types are in consumer_group.py, share_group.py and streams_group.py.

coordinator/runtime/record_codec frames the records: the type's number is before the key, the
version before the value. The group coordinator chooses the version, as Apache Kafka 4.4 does:
offsets have v4 (v1 if the client set a retention time), group metadata v3. On disk: never renumber.

Kafka: org.apache.kafka.coordinator.group.generated.
"""

from collections.abc import Mapping
from typing import Annotated

from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import (
    IGNORABLE,
    Bytes,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uuid,
    between,
    since,
    tagged,
)

from .consumer_group import CONSUMER_GROUP_TYPES
from .share_group import SHARE_GROUP_TYPES
from .streams_group import STREAMS_GROUP_TYPES


class LegacyOffsetCommitKey(Message, versions="0"):
    """Key type 0, written before Kafka 0.9; read, never written."""

    group: String
    topic: String
    partition: Int32


class LegacyOffsetCommitValue(Message, versions="0"):
    offset: Int64
    metadata: String
    commit_timestamp: Int64


class OffsetCommitKey(Message, versions="0"):
    group: String
    topic: String
    partition: Int32


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    offset: Int64
    leader_epoch: Annotated[Int32, since(3), IGNORABLE] = -1
    metadata: String
    commit_timestamp: Int64
    expire_timestamp: Annotated[Int64, between(1, 1), IGNORABLE] = -1
    topic_id: Annotated[Uuid, since(4), tagged(0, since=4), IGNORABLE] = ZERO_UUID


class GroupMetadataKey(Message, versions="0"):
    group: String


class GroupMemberMetadata(Struct):
    member_id: String
    group_instance_id: Annotated[String | None, since(3), IGNORABLE] = None
    client_id: String
    client_host: String
    rebalance_timeout: Annotated[Int32, since(1), IGNORABLE] = -1
    session_timeout: Int32
    subscription: Bytes
    assignment: Bytes


class GroupMetadataValue(Message, versions="0-4", flexible="4+"):
    protocol_type: String
    generation: Int32
    protocol: String | None
    leader: String | None
    current_state_timestamp: Annotated[Int64, since(2), IGNORABLE] = -1
    members: list[GroupMemberMetadata]


RECORD_TYPES: Mapping[int, tuple[type[Message], type[Message]]] = {
    0: (LegacyOffsetCommitKey, LegacyOffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    **CONSUMER_GROUP_TYPES,
    **SHARE_GROUP_TYPES,
    **STREAMS_GROUP_TYPES,
}
