"""Computes the target assignments of all members with an assignor.

A member's target assignment is the set of partitions that it is to own. The assignor sees the group
as it will be after the current heartbeat: with the updated member, and without the static member
that it replaces. Only targets that differ need to be written.

Kafka: TargetAssignmentBuilder.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from odradek.coordinator.assignors.assignment import (
    NOTHING,
    Assignment,
    Assignor,
    GroupSpec,
    MemberSpec,
    TopicsView,
)
from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.coordinator.runtime.steps import Step, no_step, stepping, stepping_if_many
from odradek.coordinator.runtime.timers import Now

from .draft import Draft
from .group import EpochGroup, ModernGroup, T
from .group_configs import GroupConfigs
from .member import M


class SubscribedTopics(TopicsView, Protocol):
    """The topic queries needed here; ClusterTopics implements them."""

    def ids_of(self, names: Iterable[str]) -> frozenset[bytes]:
        """Return the ids of the named topics, without those that do not exist."""


# The time of targets that were never computed, so that others may be computed at once.
NEVER_COMPUTED_MS = 0


def is_due(group: EpochGroup[Any, Any], epoch: int, now: Now, configs: GroupConfigs[Any]) -> bool:
    """Whether new targets must be computed for the group at `epoch`.

    They are due if `epoch` is newer than the targets and the assignment interval has passed. An
    interval of 0 means at once.
    """
    if group.assignment_epoch >= epoch:
        return False
    interval_ms = configs.assignment_interval_ms(group.group_id)
    return not interval_ms or now.timer_ms >= group.assigned_at.timer_ms + interval_ms


class TopicsOfNow(NamedTuple):
    """The partition counts of the topics that members subscribe to.

    They stay while the assignor gives way at its steps: to it, a topic that is deleted meanwhile
    would be an unknown one.
    """

    counts: Mapping[bytes, int]

    def partition_count(self, topic_id: bytes) -> int:
        """Return the number of partitions; -1 if the topic is none of them."""
        return self.counts.get(topic_id, -1)


def compute_targets(
    draft: Draft[Any],
    updated: M,
    assignor: Assignor,
    topics: SubscribedTopics,
    *,
    previous_id: str,
    topics_of: Callable[[M], frozenset[str]],
    is_homogeneous: bool,
    assignable: Assignment | None = None,
) -> dict[str, Assignment]:
    """Return the target of every member of the draft's group.

    `updated` is a member after its change. Its target so far is that of the member `previous_id`:
    its own id, or that of the static member that it replaces. `topics_of` returns the names of a
    member's topics. `is_homogeneous`: whether all members including `updated` have the same
    subscription. `assignable`: the partitions that may be assigned (None: all).
    Raises AssignorError.
    """
    group: ModernGroup[M] = draft.group
    step = draft.step
    ids_of: dict[frozenset[str], frozenset[bytes]] = {}  # most members have the same subscription
    counts: dict[bytes, int] = {}
    specs = {}
    for member in stepping(_members_with(group, updated, previous_id), step):
        names = topics_of(member)
        if names not in ids_of:
            of_member: list[bytes] = []
            for name in stepping_if_many(names, step):  # a topic may be deleted in a step
                for topic_id in topics.ids_of((name,)):
                    of_member.append(topic_id)
                    counts[topic_id] = topics.partition_count(topic_id)
            ids_of[names] = frozenset(of_member)
        known_id = previous_id if member is updated else member.member_id
        specs[member.member_id] = MemberSpec(
            member_id=member.member_id,
            instance_id=member.instance_id,
            subscribed_topic_ids=ids_of[names],
            assignment=group.targets.get(known_id, NOTHING),
        )
    spec = GroupSpec(members=specs, is_homogeneous=is_homogeneous, assignable=assignable)
    made = assignor.assign(spec, TopicsOfNow(counts), step)
    return {member_id: made.get(member_id, NOTHING) for member_id in stepping(specs, step)}


def changed_targets(
    old: Mapping[str, T], new: Mapping[str, T], step: Step = no_step
) -> Iterator[tuple[str, T]]:
    """Yield the new targets that differ, by member id, and first targets, which may be empty."""
    for member_id, target in stepping(new.items(), step):
        before = old.get(member_id)
        if before is not target and (before is None or before != target):
            yield member_id, target


def write_targets(
    draft: Draft[Any],
    targets: Mapping[str, T],
    target_record: Callable[[str, str, T, Step], JournalRecord],
    target_epoch_record: Callable[[str, int, int], JournalRecord],
) -> None:
    """Write the targets that have changed, and that they are those of the draft's epoch."""
    for member_id, target in changed_targets(draft.group.targets, targets, draft.step):
        draft.records.append(target_record(draft.group_id, member_id, target, draft.step))
    draft.records.append(target_epoch_record(draft.group_id, draft.epoch, draft.now.wall_ms))


def _members_with(group: ModernGroup[M], updated: M, previous_id: str) -> list[M]:
    replaced = (updated.member_id, previous_id)
    return [*(m for m in group.members.values() if m.member_id not in replaced), updated]
