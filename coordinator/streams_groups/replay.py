"""How each record changes its streams group. Kafka: the replay methods of GroupMetadataManager."""

from odradek.coordinator.modern_groups.replay import GroupRecords
from odradek.protocol.records.streams_group import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)

from .group import StreamsGroup

STREAMS_GROUP_RECORDS = GroupRecords(
    StreamsGroup,
    StreamsGroupMetadataKey,
    {
        StreamsGroupMetadataKey: lambda group, _key, value, *_: group.replay_metadata(value),
        StreamsGroupMemberMetadataKey: (
            lambda group, key, value, _, step: group.replay_member(key.member_id, value, step)
        ),
        StreamsGroupTargetAssignmentMetadataKey: (
            lambda group, _key, value, *_: group.replay_target_epoch(value)
        ),
        StreamsGroupTargetAssignmentMemberKey: (
            lambda group, key, value, _, step: group.replay_target(key.member_id, value, step)
        ),
        StreamsGroupCurrentMemberAssignmentKey: (
            lambda group, key, value, _, step: group.replay_current_assignment(
                key.member_id, value, step
            )
        ),
        StreamsGroupTopologyKey: lambda group, _key, value, *_: group.replay_topology(value),
    },
)

replay = STREAMS_GROUP_RECORDS.replay
