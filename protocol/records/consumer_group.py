"""Records of consumer groups (KIP-848) in `__consumer_offsets`: types 3 to 8, and 16.

A group is its epoch, its members (what each asked for), the target assignment (what each shall
have) and the current assignment of each member (what it has, and what it must give back first). All
of a group lies in one partition. Type 4 was written by Kafka 4.0 only: since 4.1 a hash of the
topics stands in the group's epoch record.

Kafka: GroupCoordinatorRecordHelpers.
"""

from collections.abc import Mapping
from types import MappingProxyType
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


class ConsumerGroupMetadataKey(Message, versions="0"):
    """Type 3: that the group exists, and its epoch. A tombstone of it ends the group."""

    group_id: String


class ConsumerGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Annotated[Int64, tagged(0)] = 0


class ConsumerGroupPartitionMetadataKey(Message, versions="0"):
    """Type 4, by Kafka 4.0: the topics that the group is subscribed to."""

    group_id: String


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


class ConsumerGroupMemberMetadataKey(Message, versions="0"):
    """Type 5: what a member asked for."""

    group_id: String
    member_id: String


class ClassicProtocol(Struct):
    name: String
    metadata: Bytes


class ClassicMemberMetadata(Struct):
    session_timeout_ms: Int32 = 0
    supported_protocols: list[ClassicProtocol] = []


class ConsumerGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    """A member that joined by JoinGroup has `classic_member_metadata`, any other null.

    Null must be said: its definition names a JSON null, which is no default, and so Kafka reads
    metadata with nothing in it where the field is absent.
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


class ConsumerGroupTargetAssignmentMetadataKey(Message, versions="0"):
    """Type 6: for which epoch of the group the target assignment was made."""

    group_id: String


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, tagged(0), IGNORABLE] = 0


class ConsumerGroupTargetAssignmentMemberKey(Message, versions="0"):
    """Type 7: what a member shall have."""

    group_id: String
    member_id: String


class TargetTopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ConsumerGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    topic_partitions: list[TargetTopicPartitions]


class ConsumerGroupCurrentMemberAssignmentKey(Message, versions="0"):
    """Type 8: what a member has."""

    group_id: String
    member_id: String


class CurrentTopicPartitions(Struct):
    """`assignment_epochs` is as long as `partitions`; empty or null where they are not kept."""

    topic_id: Uuid
    partitions: list[Int32]
    assignment_epochs: Annotated[list[Int32] | None, tagged(0)] = []


class ConsumerGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    """`state` numbers Kafka's MemberState."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[CurrentTopicPartitions]
    partitions_pending_revocation: list[CurrentTopicPartitions]


class ConsumerGroupRegularExpressionKey(Message, versions="0"):
    """Type 16: the topics that a regular expression stood for when it was last resolved."""

    group_id: String
    regular_expression: String


class ConsumerGroupRegularExpressionValue(Message, versions="0", flexible="0+"):
    """`version` is the offset of the metadata that was looked at."""

    topics: list[String]
    version: Int64
    timestamp: Int64


CONSUMER_GROUP_TYPES: Mapping[int, tuple[type[Message], type[Message]]] = MappingProxyType(
    {
        3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
        4: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
        5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
        6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
        7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
        8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
        16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    }
)
