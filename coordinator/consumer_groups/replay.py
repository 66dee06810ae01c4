"""How each record changes its consumer group. Kafka: the replay methods of GroupMetadataManager."""

from odradek.coordinator.modern_groups.replay import GroupRecords
from odradek.protocol.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)

from .group import ConsumerGroup

CONSUMER_GROUP_RECORDS = GroupRecords(
    ConsumerGroup,
    ConsumerGroupMetadataKey,
    {
        ConsumerGroupMetadataKey: lambda group, _key, value, *_: group.replay_metadata(value),
        ConsumerGroupPartitionMetadataKey: (
            lambda group, _key, value, *_: group.replay_partition_metadata(value)
        ),
        ConsumerGroupMemberMetadataKey: (
            lambda group, key, value, _, step: group.replay_member(key.member_id, value, step)
        ),
        ConsumerGroupTargetAssignmentMetadataKey: (
            lambda group, _key, value, *_: group.replay_target_epoch(value)
        ),
        ConsumerGroupTargetAssignmentMemberKey: (
            lambda group, key, value, _, step: group.replay_target(key.member_id, value, step)
        ),
        ConsumerGroupCurrentMemberAssignmentKey: (
            lambda group, key, value, _, step: group.replay_current_assignment(
                key.member_id, value, step
            )
        ),
        ConsumerGroupRegularExpressionKey: (
            lambda group, key, value, _, step: group.replay_regex(
                key.regular_expression, value, step
            )
        ),
    },
)

replay = CONSUMER_GROUP_RECORDS.replay
