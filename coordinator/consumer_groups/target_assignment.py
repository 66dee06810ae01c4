"""The targets of all members: who is to read which partitions, made by an assignor.

The assignor sees the group as it will be after the heartbeat that is being decided: with the member
as it becomes, and without the one whose place it takes. Only what differs is written. Expressions
count as they were last resolved: when that changes, the group's epoch rises, and there is a next
time.

Kafka: TargetAssignmentBuilder.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from odradek.coordinator.assignors.assignment import (
    NOTHING,
    Assignment,
    Assignor,
    GroupSpec,
    MemberSpec,
    TopicsView,
)
from odradek.coordinator.outcome import JournalRecord

from .group import ConsumerGroup
from .member import ConsumerMember
from .records import target_epoch_record, target_record


class SubscribedTopics(TopicsView, Protocol):
    """What is asked about topics: ClusterTopics, or a part of it."""

    def ids_of(self, names: Iterable[str]) -> frozenset[bytes]:
        """The ids of those topics that exist."""


class NewTargets(NamedTuple):
    """The records of what has changed, the new epoch's last; and everybody's target."""

    records: list[JournalRecord]
    targets: Mapping[str, Assignment]


def assign(
    group: ConsumerGroup,
    updated: ConsumerMember,
    assignor: Assignor,
    topics: SubscribedTopics,
    *,
    epoch: int,
    is_homogeneous: bool,
    now_ms: int,
) -> NewTargets:
    """Make the targets for the group's epoch `epoch`.

    `updated` is a member as it becomes: new, changed, or in the place of the one that had its
    instance id. `is_homogeneous` says whether all subscribe to the same, with it. `now_ms` is wall
    clock. Raises AssignorError.
    """
    spec = GroupSpec(members=_specs(group, updated, topics), is_homogeneous=is_homogeneous)
    made = assignor.assign(spec, topics)
    targets = {member_id: made.get(member_id, NOTHING) for member_id in spec.members}
    records = [
        target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if _differs(group.targets.get(member_id), target)
    ]
    records.append(target_epoch_record(group.group_id, epoch, now_ms))
    return NewTargets(records, targets)


def _specs(
    group: ConsumerGroup, updated: ConsumerMember, topics: SubscribedTopics
) -> dict[str, MemberSpec]:
    members = _members_with(group, updated)
    ids_of: dict[frozenset[str], frozenset[bytes]] = {}  # most subscribe to the same
    specs = {}
    for member in members:
        names = group.subscriptions.topics_of(member)
        if names not in ids_of:
            ids_of[names] = topics.ids_of(names)
        specs[member.member_id] = MemberSpec(
            member_id=member.member_id,
            instance_id=member.instance_id,
            subscribed_topic_ids=ids_of[names],
            assignment=_target_until_now(group, member),
        )
    return specs


def _members_with(group: ConsumerGroup, updated: ConsumerMember) -> list[ConsumerMember]:
    holder = group.static_member(updated.instance_id)
    replaced = {updated.member_id, holder.member_id if holder is not None else updated.member_id}
    rest = [member for member in group.members.values() if member.member_id not in replaced]
    return [*rest, updated]


def _target_until_now(group: ConsumerGroup, member: ConsumerMember) -> Assignment:
    """Its own, or that of the static member whose place it takes."""
    holder = group.static_member(member.instance_id)
    known = member.member_id if holder is None else holder.member_id
    return group.targets.get(known, NOTHING)


def _differs(old: Assignment | None, new: Assignment) -> bool:
    """Even a target of nothing is written, where there was none."""
    return old is not new and (old is None or old != new)
