"""Applies each type of record to the consumer groups of a partition.

In a compacted log any record of a group may come first, so any record creates the group. Only the
tombstone of its epoch removes it. A tombstone of an unknown group is ignored: the log cleaner has
removed the records it refers to.

Kafka: the replay methods of GroupMetadataManager.
"""

from collections.abc import Callable, Mapping, MutableMapping
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

# By key class. Arguments: group, key, value; the value is None for a tombstone.
APPLY_OF: Mapping[type[Message], Apply] = MappingProxyType(
    {
        ConsumerGroupMetadataKey: lambda group, _, value: group.replay_metadata(value),
        ConsumerGroupPartitionMetadataKey: (
            lambda group, _, value: group.replay_partition_metadata(value)
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


def replay(groups: MutableMapping[str, Any], key: Any, value: Message | None) -> None:
    """Apply one record of a type in APPLY_OF to `groups`: groups of any type by group id.

    A group of another type is replaced.
    """
    group = groups.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if value is None:
            return
        group = groups[key.group_id] = ConsumerGroup(key.group_id)
    if value is None and isinstance(key, ConsumerGroupMetadataKey):
        del groups[key.group_id]
    else:
        APPLY_OF[type(key)](group, key, value)
