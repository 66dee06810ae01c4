"""Records of consumer groups (KIP-848) in `__consumer_offsets`: types 3 to 8, and 16.

A group consists of its epoch, its members (what each has requested), the target assignment (what
each member should have) and the current assignment of each member (what it has, and what it must
revoke first). All records of a group are in one partition. Type 4 was written by Kafka 4.0 only:
since 4.1 the group's epoch record has a hash of the topics instead.

Kafka: GroupCoordinatorRecordHelpers.
"""

from collections.abc import Mapping
from typing import Annotated

from odradek.protocol.schema import (
    IGNORABLE,
    Bytes,
    Int8,
    Int32,
    Int64,
    Message,
    String,
    Struct,
    Uuid,
    tagged,
)

from .group_keys import GroupKey, MemberKey


class ConsumerGroupMetadataKey(GroupKey):
    """Type 3: the group's epoch. A tombstone of this record deletes the group."""


class ConsumerGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Annotated[Int64, tagged(0)] = 0


class ConsumerGroupPartitionMetadataKey(GroupKey):
    """Type 4, written by Kafka 4.0: the topics that the group is subscribed to."""


class PartitionRacks(Struct):
    partition: Int32
    racks: list[String]


class TopicMetadata(Struct):
    topic_id: Uuid
    topic_name: String
    num_partitions: Int32
    partition_metadata: list[PartitionRacks]


class ConsumerGroupPartitionMetadataValue(Message, versions="0", flexible="0+"):
    topics: list[TopicMetadata]


class ConsumerGroupMemberMetadataKey(MemberKey):
    """Type 5: what a member has requested."""


class ClassicProtocol(Struct):
    name: String
    metadata: Bytes


class ClassicMemberMetadata(Struct):
    session_timeout_ms: Int32 = 0
    supported_protocols: list[ClassicProtocol] = []


class ConsumerGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    """`classic_member_metadata` is set for a member that joined with JoinGroup, else null.

    A null is written explicitly, and not left out. Kafka's definition has a JSON null as the
    default, which Kafka's generator ignores. So where the field is absent, Kafka reads empty
    metadata instead of null.
    """

    instance_id: String | None
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: String | None
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, tagged(0)] = (
        ClassicMemberMetadata()
    )


class ConsumerGroupTargetAssignmentMetadataKey(GroupKey):
    """Type 6: the epoch of the group for which the target assignment was made."""


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    """`assignment_timestamp` is in milliseconds since 1970; 0 if it is not known."""

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, tagged(0), IGNORABLE] = 0


class ConsumerGroupTargetAssignmentMemberKey(MemberKey):
    """Type 7: the target assignment of a member."""


class TargetTopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ConsumerGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    topic_partitions: list[TargetTopicPartitions]


class ConsumerGroupCurrentMemberAssignmentKey(MemberKey):
    """Type 8: the current assignment of a member."""


class CurrentTopicPartitions(Struct):
    """`assignment_epochs` has one entry per partition; empty or null in records without them."""

    topic_id: Uuid
    partitions: list[Int32]
    assignment_epochs: Annotated[list[Int32] | None, tagged(0)] = []


class ConsumerGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    """`state` is the number of Kafka's MemberState."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[CurrentTopicPartitions]
    partitions_pending_revocation: list[CurrentTopicPartitions]


class ConsumerGroupRegularExpressionKey(Message, versions="0"):
    """Type 16: the topics that a regular expression matched when it was last resolved."""

    group_id: String
    regular_expression: String


class ConsumerGroupRegularExpressionValue(Message, versions="0", flexible="0+"):
    """`version` is the offset of the metadata against which it was resolved.

    `timestamp` is when that was, in milliseconds since 1970.
    """

    topics: list[String]
    version: Int64
    timestamp: Int64


CONSUMER_GROUP_TYPES: Mapping[int, tuple[type[Message], type[Message]]] = {
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
