"""The uniform assignor for members that all subscribe to the same topics.

With P partitions of all topics and M members, each member gets P // M partitions, and P % M members
get one extra partition. One pass over the members, sorted by id:

- Each keeps as many partitions of its target as it may get, with one extra partition while extras
  are left. Its other partitions become free, as do those of topics that it no longer subscribes to.
- A member that keeps too few partitions to need the extra leaves it to the members after it, except
  when as many extras as members are left. So extras go first to members that thus keep one more.

Then the free partitions (those in no target first, then those just freed) are given in that order
to the members with room. A partition moves only to balance loads.

Kafka: UniformHomogeneousAssignmentBuilder.
"""

from dataclasses import dataclass
from itertools import islice

from odradek.coordinator.runtime.steps import Step, in_order, stepping, stepping_if_many
from odradek.protocol.primitives import uuid_text

from .assignment import NOTHING, Assignment, AssignorError, GroupSpec, MemberSpec, TopicsView

_Partitions = list[tuple[bytes, int]]


@dataclass(slots=True, kw_only=True)
class _Share:
    """The partitions a member keeps, and how many more it gets (`room`)."""

    member: MemberSpec
    kept: Assignment
    room: int


def assign_homogeneous(spec: GroupSpec, topics: TopicsView, step: Step) -> dict[str, Assignment]:
    """Return the new target of every member; at least one is required. Raises AssignorError."""
    members = [spec.members[member_id] for member_id in sorted(spec.members)]
    topic_ids = members[0].subscribed_topic_ids
    if not topic_ids:
        return {each.member_id: each.assignment and NOTHING for each in members}
    counts = {
        topic_id: partition_count(topics, topic_id) for topic_id in in_order(list(topic_ids), step)
    }
    free = _in_no_target(members, counts, step)
    shares = _keep_targets(members, counts, free, step)
    return _distribute(shares, free, step)


def partition_count(topics: TopicsView, topic_id: bytes) -> int:
    """Return the number of partitions of a topic. Raises AssignorError for an unknown topic."""
    count = topics.partition_count(topic_id)
    if count == -1:
        raise AssignorError(
            f"Members are subscribed to topic {uuid_text(topic_id)} which doesn't exist in the "
            "topic metadata."
        )
    return count


def _in_no_target(members: list[MemberSpec], counts: dict[bytes, int], step: Step) -> _Partitions:
    held: dict[bytes, set[int]] = {topic_id: set() for topic_id in counts}
    for member in stepping(members, step):
        for topic_id, partitions in stepping_if_many(member.assignment.items(), step):
            if topic_id in held:
                held[topic_id] |= partitions
    return [
        (topic_id, partition)
        for topic_id, count in counts.items()
        for partition in stepping(range(count), step)
        if partition not in held[topic_id]
    ]


def _keep_targets(
    members: list[MemberSpec], counts: dict[bytes, int], free: _Partitions, step: Step
) -> list[_Share]:
    """Return what each member keeps; add the partitions it must give up to `free`."""
    least, extras = divmod(sum(counts.values()), len(members))
    shares = []
    for index, member in enumerate(stepping(members, step)):
        has_extra = extras > 0
        kept, room = _keep_for_member(member, counts, least + has_extra, free, step)
        if room > 0 and has_extra and len(members) - index > extras:
            room -= 1
            has_extra = False
        extras -= has_extra
        shares.append(_Share(member=member, kept=kept, room=room))
    return shares


def _keep_for_member(
    member: MemberSpec, counts: dict[bytes, int], room: int, free: _Partitions, step: Step
) -> tuple[Assignment, int]:
    """Return at most `room` partitions of the member's target, and the room that is left."""
    target = member.assignment
    load = sum(map(len, target.values()))
    if load <= room and target.keys() <= counts.keys():
        return target, room - load
    kept: dict[bytes, frozenset[int]] = {}
    for topic_id in stepping_if_many(sorted(target.keys() & counts.keys()), step):
        partitions = target[topic_id]
        if len(partitions) > room:
            ascending = sorted(partitions)
            free += [(topic_id, partition) for partition in ascending[room:]]
            partitions = frozenset(ascending[:room])
        if partitions:
            kept[topic_id] = partitions
            room -= len(partitions)
    return kept, room


def _distribute(shares: list[_Share], free: _Partitions, step: Step) -> dict[str, Assignment]:
    rest = iter(free)
    targets = {
        share.member.member_id: _with_more(share.kept, list(islice(rest, share.room)), step)
        for share in stepping(shares, step)
    }
    if next(rest, None) is not None:  # a partition was in two targets, or does not exist
        raise AssignorError("Partitions were left unassigned")
    return targets


def _with_more(kept: Assignment, given: _Partitions, step: Step) -> Assignment:
    if not given:
        return kept
    more: dict[bytes, list[int]] = {}
    for topic_id, partition in stepping_if_many(given, step):
        more.setdefault(topic_id, []).append(partition)
    nothing: frozenset[int] = frozenset()
    topic_ids = stepping_if_many(more, step)
    return {**kept, **{each: kept.get(each, nothing).union(more[each]) for each in topic_ids}}
