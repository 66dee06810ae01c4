"""The range assignor: of each topic every subscriber gets one run of neighbouring partitions.

The subscribers of a topic stand in a fixed order, and its partitions are cut into runs of equal
length, the first runs longer by one where it does not come out even. So topics with as many
partitions and the same subscribers are cut alike: a member gets the same partition numbers of all
of them, which is what joining streams by key needs (co-partitioning).

The order: static members first, by instance id, then the others by member id, both as Java compares
strings. A static member that comes back under a new member id finds its old place, and with it its
old partitions. Otherwise nothing is kept for its own sake: a member that comes or goes shifts the
runs of all that stand behind it.

Not rack-aware: Kafka's clients' assignor of the same name is, its server-side one is not.
Kafka: RangeAssignor. The result is equal to Kafka's, partition by partition.
"""

from collections import defaultdict
from collections.abc import Iterator

from odradek.coordinator.java_hash import java_order

from .assignment import NOTHING, Assignment, AssignorError, GroupSpec, MemberSpec, TopicsView

_Target = dict[bytes, frozenset[int]]


class RangeAssignor:
    """See the module."""

    name = "range"

    def assign(self, spec: GroupSpec, topics: TopicsView) -> dict[str, Assignment]:
        """The new target of every member; raises AssignorError for a topic that does not exist."""
        targets: dict[str, _Target] = {}
        takers: defaultdict[bytes, list[_Target]] = defaultdict(list)
        for member in sorted(spec.members.values(), key=_sort_key):
            target = targets[member.member_id] = {}
            for topic_id in member.subscribed_topic_ids:
                takers[topic_id].append(target)
        for topic_id in sorted(takers):
            runs = _runs(_partition_count(topics, topic_id), len(takers[topic_id]))
            for target, run in zip(takers[topic_id], runs, strict=False):
                target[topic_id] = run
        return {
            member_id: _unless_equal(targets[member_id], spec, member_id) for member_id in targets
        }


def _runs(partition_count: int, subscriber_count: int) -> Iterator[frozenset[int]]:
    """The runs that are not empty: fewer than subscribers where there are fewer partitions."""
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
    """Where a member stands, among Java's strings."""
    name = member.member_id if member.instance_id is None else member.instance_id
    return member.instance_id is None, java_order(name)


def _partition_count(topics: TopicsView, topic_id: bytes) -> int:
    count = topics.partition_count(topic_id)
    if count == -1:
        raise AssignorError("Member is subscribed to a non-existent topic")
    return count
