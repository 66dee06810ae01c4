"""What each type of record means to the consumer groups of a partition.

Any record of a group makes it, for in a compacted log any may come first; only the tombstone of its
epoch ends it. A tombstone of something that is not there says nothing new: the cleaner has taken
what it was written for.

Kafka: the replay methods of GroupMetadataManager.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from odradek.protocol.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from odradek.protocol.schema import Message

from .group import ConsumerGroup

Apply = Callable[[ConsumerGroup, Any, Any], None]

# By the class of the key; the value is None for a tombstone.
APPLY_OF: Mapping[type[Message], Apply] = MappingProxyType(
    {
        ConsumerGroupMetadataKey: lambda group, _, value: group.replay_metadata(value),
        ConsumerGroupPartitionMetadataKey: (
            lambda group, _, value: group.replay_topics_of_kafka_4_0(value)
        ),
        ConsumerGroupMemberMetadataKey: (
            lambda group, key, value: group.replay_member(key.member_id, value)
        ),
        ConsumerGroupTargetAssignmentMetadataKey: (
            lambda group, _, value: group.replay_target_epoch(value)
        ),
        ConsumerGroupTargetAssignmentMemberKey: (
            lambda group, key, value: group.replay_target(key.member_id, value)
        ),
        ConsumerGroupCurrentMemberAssignmentKey: (
            lambda group, key, value: group.replay_current_assignment(key.member_id, value)
        ),
        ConsumerGroupRegularExpressionKey: (
            lambda group, key, value: group.replay_regex(key.regular_expression, value)
        ),
    }
)


def replay(groups: dict[str, ConsumerGroup], key: Any, value: Message | None) -> None:
    """Apply one record, of the types in APPLY_OF, to the groups by name."""
    group = groups.get(key.group_id)
    if group is None:
        if value is None:
            return
        group = groups[key.group_id] = ConsumerGroup(key.group_id)
    if value is None and isinstance(key, ConsumerGroupMetadataKey):
        del groups[key.group_id]
    else:
        APPLY_OF[type(key)](group, key, value)
