"""Records of share groups (KIP-932) in `__consumer_offsets`: types 10 to 15.

They contain the members of the group and which member reads which partition. Which records have
been delivered and acknowledged is stored in `__share_group_state` (share_group_state.py). Type 15
lists the partitions for which that state has been initialized. Type 9 was removed before share
groups were released.

Kafka: GroupCoordinatorRecordHelpers.
"""

from collections.abc import Mapping
from typing import Annotated

from odradek.protocol.schema import (
    IGNORABLE,
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


class ShareGroupMemberMetadataKey(MemberKey):
    """Type 10: what a member has requested."""


class ShareGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    rack_id: String | None
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]


class ShareGroupMetadataKey(GroupKey):
    """Type 11: the group's epoch. A tombstone of this record deletes the group."""


class ShareGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: Int32
    metadata_hash: Int64


class ShareGroupTargetAssignmentMetadataKey(GroupKey):
    """Type 12: the epoch of the group for which the target assignment was made."""


class ShareGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, tagged(0), IGNORABLE] = 0


class ShareGroupTargetAssignmentMemberKey(MemberKey):
    """Type 13: the target assignment of a member."""


class TopicPartitions(Struct):
    topic_id: Uuid
    partitions: list[Int32]


class ShareGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    topic_partitions: list[TopicPartitions]


class ShareGroupCurrentMemberAssignmentKey(MemberKey):
    """Type 14: the current assignment of a member."""


class ShareGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    """`state` is the number of Kafka's MemberState."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[TopicPartitions]


class ShareGroupStatePartitionMetadataKey(GroupKey):
    """Type 15: the partitions whose state in `__share_group_state` is initialized."""


class TopicPartitionsInfo(Struct):
    topic_id: Uuid
    topic_name: String
    partitions: list[Int32]


class TopicInfo(Struct):
    topic_id: Uuid
    topic_name: String


class ShareGroupStatePartitionMetadataValue(Message, versions="0", flexible="0+"):
    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]
    deleting_topics: list[TopicInfo]


SHARE_GROUP_TYPES: Mapping[int, tuple[type[Message], type[Message]]] = {
    10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    11: (ShareGroupMetadataKey, ShareGroupMetadataValue),
    12: (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    13: (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    14: (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    15: (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
}
