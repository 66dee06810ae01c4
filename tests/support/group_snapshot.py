"""All that is journaled of the groups of a partition, as plain values that can be compared.

What is counted is counted again here, from the members: so a snapshot also says that the counts are
right.
"""

from collections import Counter
from typing import Any

from odradek.coordinator.classic_groups.group import JOURNALED, ClassicGroup
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.groups.group_state import GroupState
from odradek.coordinator.modern_groups.member import MemberState
from odradek.coordinator.modern_groups.subscriptions import Subscribers
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.streams_groups.group import StreamsGroup


def state_snapshot(state: GroupState) -> dict[str, Any]:
    """Everything that the records of one partition say."""
    return {
        "classic": {
            name: group.journaled
            for name, group in state.groups.items()
            if isinstance(group, ClassicGroup) and group.journaled is not None
        },
        "consumer": {
            name: consumer_group_snapshot(group)
            for name, group in state.groups.items()
            if isinstance(group, ConsumerGroup)
        },
        "streams": {
            name: streams_group_snapshot(group)
            for name, group in state.groups.items()
            if isinstance(group, StreamsGroup)
        },
        "share": {
            name: group.tombstones()
            for name, group in state.groups.items()
            if isinstance(group, ShareGroup)
        },
        "committed": {
            group_id: offsets.committed for group_id, offsets in state.offsets._by_group.items()
        },
        "pending": {
            (group_id, place): sorted(offsets.pending_of(place), key=lambda one: one.record_offset)
            for group_id, offsets in state.offsets._by_group.items()
            for place in offsets.pending
        },
    }


def is_at_rest(group: ClassicGroup) -> bool:
    """Whether nothing has happened in a classic group since its last record."""
    written = group.journaled
    return group.state in JOURNALED and group.generation_id == (
        written.generation if written else 0
    )


def classic_group_snapshot(group: ClassicGroup) -> dict[str, Any]:
    """What a classic group at rest is, which its last record must say too."""
    return {
        "generation": group.generation_id,
        "protocol": (group.protocol_type, group.protocol_name),
        "leader": group.leader_id,
        "state": (group.state, group.state_since_ms),
        "topics": group.subscriptions.topics,
        "static": dict(group.roster.static_member_ids),
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


def consumer_group_snapshot(group: ConsumerGroup) -> dict[str, Any]:
    """The group's records, in one; asserts that whatever is counted agrees with the members."""
    members = list(group.members.values())
    assert group.subscriptions.topics == _topics(group)
    assert group.subscriptions.regex_subscribers == Counter(
        member.subscribed_regex for member in members if member.subscribed_regex
    )
    assert group.classic_member_count == sum(member.classic is not None for member in members)
    assert group.classic_protocols == Counter(
        name
        for member in members
        if member.classic is not None
        for name in {protocol.name for protocol in member.classic.supported_protocols}
    )
    assert group.state_name == _state(group, members)
    return {
        "epoch": group.epoch,
        "hash": group.metadata_hash,
        "assignment": (group.assignment_epoch, group.assignment_timestamp_ms),
        "members": dict(group.members),
        "static": dict(group.static_member_ids),
        "targets": dict(group.targets),
        "owners": dict(group.ownership._epochs),
        "regexes": dict(group.subscriptions.resolved_regexes),
        "of kafka 4.0": group.has_partition_metadata,
        "state": group.state_name,
        "assignor": group.preferred_assignor,
    }


def streams_group_snapshot(group: StreamsGroup) -> dict[str, Any]:
    """The group's records, in one."""
    topology = group.topology
    return {
        "epoch": group.epoch,
        "hash": group.metadata_hash,
        "validated": group.validated_topology_epoch,
        "configs": dict(group.assignment_configs),
        "topology": None if topology is None else (topology.epoch, dict(topology.subtopologies)),
        "assignment": (group.assignment_epoch, group.assignment_timestamp_ms),
        "members": dict(group.members),
        "targets": dict(group.targets),
        "state": group.state_name,
    }


def _topics(group: ConsumerGroup) -> dict[str, Subscribers]:
    by_name = Counter(name for one in group.members.values() for name in one.subscribed_topics)
    by_regex = Counter(
        name
        for resolved in group.subscriptions.resolved_regexes.values()
        for name in resolved.topics
    )
    return {name: Subscribers(by_name[name], by_regex[name]) for name in by_name | by_regex}


def _state(group: ConsumerGroup, members: list[ConsumerMember]) -> str:
    if not members:
        return "Empty"
    if group.epoch > group.assignment_epoch:
        return "Assigning"
    reached = (
        member.state is MemberState.STABLE and member.member_epoch == group.assignment_epoch
        for member in members
    )
    return "Stable" if all(reached) else "Reconciling"
