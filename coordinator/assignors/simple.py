"""The simple assignor, the only one of share groups: all partitions have equally many readers.

With P partitions and M members, each partition gets M / P readers, rounded up, and the loads of the
members differ by one at most. If all members subscribe to the same topics, all partitions are
shared together; otherwise each topic is shared among its subscribers alone.

1. A member keeps its partitions, up to its load.
2. A partition with too many readers loses some.
3. A partition with too few gets members in turn that have room and do not read it yet.

Members and partitions are taken in the order of their ids. In Kafka it is the order of a HashMap.

Kafka: SimpleAssignor, SimpleHomogeneousAssignmentBuilder, SimpleHeterogeneousAssignmentBuilder.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise

from odradek.coordinator.runtime.steps import Step, in_order, no_step, stepping, stepping_if_many

from .assignment import NOTHING, Assignment, GroupSpec, MemberSpec, TopicsView
from .uniform_homogeneous import partition_count

_Partition = tuple[bytes, int]
_Readers = dict[_Partition, list[str]]
_Reads = dict[str, set[_Partition]]


class SimpleAssignor:
    """The simple assignor; see the module docstring."""

    name = "simple"

    def assign(
        self, spec: GroupSpec, topics: TopicsView, step: Step = no_step
    ) -> dict[str, Assignment]:
        """Return the new target of every member. Raises AssignorError for an unknown topic.

        `step` is called again and again, so that other requests are served meanwhile.
        """
        members = [spec.members[member_id] for member_id in sorted(spec.members)]
        # Most members have the same subscription.
        distinct = {member.subscribed_topic_ids for member in stepping(members, step)}
        subscribed = list(frozenset[bytes]().union(*distinct))
        by_topic = {
            topic_id: list(_assignable(spec, topics, topic_id, step))
            for topic_id in in_order(subscribed, step)
        }
        reads: _Reads = {member.member_id: set() for member in members}
        if spec.is_homogeneous:
            _share(members, list(chain.from_iterable(by_topic.values())), reads, step)
        else:
            for topic_id, partitions in by_topic.items():
                readers = [m for m in members if topic_id in m.subscribed_topic_ids]
                _share(readers, partitions, reads, step)
        return {
            member.member_id: _target(member, reads[member.member_id], step)
            for member in stepping(members, step)
        }


def _assignable(
    spec: GroupSpec, topics: TopicsView, topic_id: bytes, step: Step
) -> Iterator[_Partition]:
    every = range(partition_count(topics, topic_id))
    allowed = every if spec.assignable is None else spec.assignable.get(topic_id, ())
    return ((topic_id, partition) for partition in stepping(every, step) if partition in allowed)


def _share(
    members: Sequence[MemberSpec], partitions: Sequence[_Partition], reads: _Reads, step: Step
) -> None:
    """Add to `reads` which member reads which of these partitions."""
    if not members or not partitions:
        return
    sharing = -(-len(members) // len(partitions))  # rounded up
    loads = _loads(members, sharing * len(partitions), step)
    readers = _keep(members, partitions, loads, sharing, step)
    _fill(readers, loads, sharing, step)
    for partition, member_ids in stepping(readers.items(), step):
        for member_id in member_ids:
            reads[member_id].add(partition)


def _loads(members: Sequence[MemberSpec], total: int, step: Step) -> dict[str, int]:
    """The number of partitions of each member: `total`, divided evenly, the larger ones spread."""
    count = len(members)
    sums = [-(-total * index // count) for index in stepping(range(count + 1), step)]  # rounded up
    return {
        member.member_id: after - before
        for member, (before, after) in stepping(zip(members, pairwise(sums), strict=True), step)
    }


def _keep(
    members: Iterable[MemberSpec],
    partitions: Sequence[_Partition],
    loads: dict[str, int],
    sharing: int,
    step: Step,
) -> _Readers:
    """Return the readers that each partition keeps. `loads` becomes the room that is left."""
    readers: _Readers = {partition: [] for partition in stepping(partitions, step)}
    topic_ids = {topic_id for topic_id, _ in stepping(partitions, step)}
    for member in stepping(members, step):
        member_id = member.member_id
        for topic_id in sorted(topic_ids & member.assignment.keys()):
            for partition in stepping(sorted(member.assignment[topic_id]), step):
                kept = readers.get((topic_id, partition))
                if kept is not None and loads[member_id] and len(kept) < sharing:
                    kept.append(member_id)
                    loads[member_id] -= 1
    return readers


def _fill(readers: _Readers, room: Mapping[str, int], sharing: int, step: Step) -> None:
    """Give each partition readers, until it has `sharing` or no member with room is left."""
    left = dict(room)
    turn = [member_id for member_id, count in left.items() if count]
    for member_ids in stepping(readers.values(), step):
        kept = set(member_ids)
        waiting = (member_id for member_id in turn if member_id not in kept)
        chosen = list(islice(waiting, sharing - len(member_ids)))
        member_ids += chosen
        for member_id in chosen:
            left[member_id] -= 1
            turn.remove(member_id)
            if left[member_id]:
                turn.append(member_id)


def _target(member: MemberSpec, reads: set[_Partition], step: Step) -> Assignment:
    by_topic: dict[bytes, set[int]] = {}
    for topic_id, partition in stepping_if_many(reads, step):
        by_topic.setdefault(topic_id, set()).add(partition)
    target = {
        topic_id: frozenset(by_topic[topic_id]) for topic_id in in_order(list(by_topic), step)
    }
    if target == member.assignment:
        return member.assignment
    return target or NOTHING
