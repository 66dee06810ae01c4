"""Computes the target assignments of all members with an assignor.

The assignor sees the group as it will be after the current heartbeat: with the updated member, and
without the static member that it replaces. Only targets that differ are written. Regular
expressions count with the topics of their last resolution. When a later resolution changes these,
the group epoch rises and the targets are computed again.

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
    """The topic queries needed here; ClusterTopics implements them."""

    def ids_of(self, names: Iterable[str]) -> frozenset[bytes]:
        """Return the ids of the named topics, without those that do not exist."""


class NewTargets(NamedTuple):
    """The records of changed targets, then of the new epoch; and the target of every member."""

    records: list[JournalRecord]
    targets: Mapping[str, Assignment]


def compute_targets(
    group: ConsumerGroup,
    updated: ConsumerMember,
    assignor: Assignor,
    topics: SubscribedTopics,
    *,
    epoch: int,
    is_homogeneous: bool,
    now_ms: int,
) -> NewTargets:
    """Compute the targets for the group epoch `epoch`.

    `updated` is a member after its change: new, changed, or replacing the holder of its instance
    id. `is_homogeneous`: whether all members including it have the same subscription. `now_ms` is
    wall time. Raises AssignorError.
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
    ids_of: dict[frozenset[str], frozenset[bytes]] = {}  # most members have the same subscription
    specs = {}
    for member in members:
        names = group.subscriptions.topics_of(member)
        if names not in ids_of:
            ids_of[names] = topics.ids_of(names)
        specs[member.member_id] = MemberSpec(
            member_id=member.member_id,
            instance_id=member.instance_id,
            subscribed_topic_ids=ids_of[names],
            assignment=_current_target(group, member),
        )
    return specs


def _members_with(group: ConsumerGroup, updated: ConsumerMember) -> list[ConsumerMember]:
    holder = group.static_member(updated.instance_id)
    replaced = {updated.member_id, holder.member_id if holder is not None else updated.member_id}
    rest = [member for member in group.members.values() if member.member_id not in replaced]
    return [*rest, updated]


def _current_target(group: ConsumerGroup, member: ConsumerMember) -> Assignment:
    """The member's target, or that of the static member that it replaces."""
    holder = group.static_member(member.instance_id)
    known = member.member_id if holder is None else holder.member_id
    return group.targets.get(known, NOTHING)


def _differs(old: Assignment | None, new: Assignment) -> bool:
    """Whether to write the target. An empty one is written if there was none before."""
    return old is not new and (old is None or old != new)
