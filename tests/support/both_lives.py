"""What a group is in life, against what its log says: the same, or a restart would change it."""

from typing import Any

from odradek.coordinator.classic_groups.group import JOURNALED, ClassicGroup
from odradek.coordinator.group import Group
from odradek.coordinator.group_shards import GroupShards
from tests.support.group_snapshot import consumer_group_snapshot
from tests.support.groups import GROUP, Groups


def assert_log_agrees(groups: Groups, group_id: str = GROUP) -> None:
    """Read the log into another state, and compare the group there with the living one."""
    living = groups.coordinator.shards.of(group_id).state.find(group_id)
    shards = GroupShards(groups.settings)
    shards.prepare(len(groups.logs))
    for log in groups.logs:
        shards.load(log)  # type: ignore[arg-type] # a MemoryLog serves a journal
    assert _snapshot(shards.of(group_id).state.find(group_id), living) == _snapshot(living, living)


def _snapshot(group: Group | None, living: Group | None) -> Any:
    if group is None:
        return None
    if not isinstance(group, ClassicGroup):
        return consumer_group_snapshot(group)  # type: ignore[arg-type] # there are these two
    if isinstance(living, ClassicGroup) and living.state not in JOURNALED:
        return "in the midst of a rebalance"
    return {
        "generation": group.generation_id,
        "protocol": (group.protocol_type, group.protocol_name),
        "leader": group.leader_id,
        "state": (group.state, group.state_since_ms),
        "topics": group.subscribed_topics,
        "static": dict(group.static_member_ids),
        "members": {
            member.member_id: (
                member.group_instance_id,
                (member.client_id, member.client_host),
                (member.session_timeout_ms, member.rebalance_timeout_ms),
                member.assignment,
            )
            for member in group.members.values()
        },
    }
