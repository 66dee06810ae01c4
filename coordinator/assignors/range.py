"""The range assignor: every subscriber of a topic gets one run of consecutive partitions.

The subscribers of a topic are sorted, and its partitions are divided into runs of equal length. If
the division has a remainder, the first runs are longer by one. Topics with equal partition counts
and equal subscribers are divided alike: a member gets the same partition numbers of all of them.
Joining streams by key needs this (co-partitioning).

Static members come first, sorted by instance id; then the other members, sorted by member id. Both
use Java's string order. A static member that comes back under a new member id keeps its position,
and so its partitions. The assignor is not sticky otherwise: a member that joins or leaves shifts
the runs of all members after it.

The assignor does not use racks. In Kafka the client-side assignor of this name does, and the
server-side one does not. The result is equal to Kafka's, partition by partition.

Kafka: RangeAssignor.
"""

from collections import defaultdict
from collections.abc import Iterator

from odradek.coordinator.java.java_hash import java_order
from odradek.coordinator.runtime.steps import Step, in_order, no_step, stepping

from .assignment import NOTHING, Assignment, AssignorError, GroupSpec, MemberSpec, TopicsView

_Target = dict[bytes, frozenset[int]]


class RangeAssignor:
    """The range assignor; see the module docstring."""

    name = "range"

    def assign(
        self, spec: GroupSpec, topics: TopicsView, step: Step = no_step
    ) -> dict[str, Assignment]:
        """Return the new target of every member. Raises AssignorError for an unknown topic."""
        targets: dict[str, _Target] = {}
        takers: defaultdict[bytes, list[_Target]] = defaultdict(list)
        members = list(spec.members.values())
        keys = [_sort_key(member) for member in stepping(members, step)]
        for index in stepping(sorted(range(len(members)), key=keys.__getitem__), step):
            member = members[index]
            target = targets[member.member_id] = {}
            for topic_id in stepping(member.subscribed_topic_ids, step):
                takers[topic_id].append(target)
        for topic_id in in_order(list(takers), step):
            runs = _runs(_partition_count(topics, topic_id), len(takers[topic_id]))
            for target, run in stepping(zip(takers[topic_id], runs, strict=False), step):
                target[topic_id] = run
        return {
            member_id: _unless_equal(targets[member_id], spec, member_id)
            for member_id in stepping(targets, step)
        }


def _runs(partition_count: int, subscriber_count: int) -> Iterator[frozenset[int]]:
    """Yield the non-empty runs; fewer than subscribers if there are fewer partitions."""
    shortest, longer = divmod(partition_count, subscriber_count)
    start = 0
    while start < partition_count:
        end = start + shortest + (longer > 0)
        longer -= 1
        yield frozenset(range(start, end))
        start = end


def _unless_equal(target: _Target, spec: GroupSpec, member_id: str) -> Assignment:
    present = spec.members[member_id].assignment
    return present if target == present else target or NOTHING


def _sort_key(member: MemberSpec) -> tuple[bool, bytes]:
    """Static members before others, each in Java's string order."""
    name = member.member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, java_order(name)


def _partition_count(topics: TopicsView, topic_id: bytes) -> int:
    count = topics.partition_count(topic_id)
    if count == -1:
        raise AssignorError("Member is subscribed to a non-existent topic")
    return count
