"""How each record changes its share group. Kafka: the replay methods of GroupMetadataManager."""

from odradek.coordinator.modern_groups.replay import GroupRecords
from odradek.protocol.records.share_group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMetadataKey,
)

from .group import ShareGroup

SHARE_GROUP_RECORDS = GroupRecords(
    ShareGroup,
    ShareGroupMetadataKey,
    {
        ShareGroupMemberMetadataKey: (
            lambda group, key, value, _, step: group.replay_member(key.member_id, value, step)
        ),
        ShareGroupMetadataKey: lambda group, _key, value, *_: group.replay_metadata(value),
        ShareGroupTargetAssignmentMetadataKey: (
            lambda group, _key, value, *_: group.replay_target_epoch(value)
        ),
        ShareGroupTargetAssignmentMemberKey: (
            lambda group, key, value, _, step: group.replay_target(key.member_id, value, step)
        ),
        ShareGroupCurrentMemberAssignmentKey: (
            lambda group, key, value, _, step: group.replay_current_assignment(
                key.member_id, value, step
            )
        ),
        ShareGroupStatePartitionMetadataKey: (
            lambda group, _key, value, at_ms, step: group.replay_state_partitions(
                value, at_ms, step
            )
        ),
    },
)
