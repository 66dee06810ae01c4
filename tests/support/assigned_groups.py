"""Consumer groups for the server-side assignors: random ones, and what to count in their targets.

The old targets are arbitrary: any partition may be held by any one member, subscribed or not, or by
nobody, and some are of topics that are gone. So every change of a group is among them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hypothesis import strategies as st
from msgspec.structs import replace

from odradek.coordinator.assignors.assignment import Assignment, GroupSpec, MemberSpec

GONE = b"\xff" * 16


@dataclass(frozen=True)
class Topics:
    """A TopicsView: the partition counts of the topics there are."""

    counts: Mapping[bytes, int]

    def partition_count(self, topic_id: bytes) -> int:
        return self.counts.get(topic_id, -1)


def small_id(number: int) -> bytes:
    """A topic id of which a Java HashSet is in numeric order, up to 15."""
    return number.to_bytes(16)


small_ids = st.integers(2, 15).map(small_id)
any_ids = st.binary(min_size=16, max_size=16).filter(lambda each: each != GONE)
# The last two of the alphabet stand the other way round in Java's order of strings.
names = st.text("ab-\uff5e\U0001f600", min_size=1, max_size=4)


@st.composite
def groups(
    draw: st.DrawFn, ids: st.SearchStrategy[bytes] = any_ids, *, is_homogeneous: bool
) -> tuple[GroupSpec, Topics]:
    """A group of up to nine members on up to five topics."""
    counts = draw(st.dictionaries(ids, st.integers(0, 12), min_size=1, max_size=5))
    member_ids = draw(st.lists(names, min_size=1, max_size=9, unique=True))
    instances = draw(st.lists(names, min_size=len(member_ids), unique=True))
    subscription = st.frozensets(st.sampled_from(sorted(counts)))
    common = draw(subscription)
    members = {}
    targets = draw(_targets(member_ids, counts))
    for member_id, instance_id in zip(member_ids, instances, strict=False):
        members[member_id] = MemberSpec(
            member_id=member_id,
            instance_id=instance_id if draw(st.booleans()) else None,
            subscribed_topic_ids=common if is_homogeneous else draw(subscription),
            assignment=targets[member_id],
        )
    return GroupSpec(members=members, is_homogeneous=is_homogeneous), Topics(counts)


@st.composite
def _targets(
    draw: st.DrawFn, member_ids: list[str], counts: Mapping[bytes, int]
) -> dict[str, Assignment]:
    targets: dict[str, dict[bytes, set[int]]] = {each: {} for each in member_ids}
    # Now and then all that is held is held by one or two: so imbalance is not rare.
    holders = st.sampled_from([*member_ids[: draw(st.integers(1, 9))], None])
    for topic_id, count in {**counts, GONE: draw(st.integers(0, 2))}.items():
        for partition in range(count):
            owner = draw(holders)
            if owner is not None:
                targets[owner].setdefault(topic_id, set()).add(partition)
    return {
        member_id: {topic_id: frozenset(held) for topic_id, held in target.items()}
        for member_id, target in targets.items()
    }


def places(target: Assignment) -> Iterator[tuple[bytes, int]]:
    """The partitions of a target, each with its topic."""
    return ((topic_id, each) for topic_id, partitions in target.items() for each in partitions)


def load(target: Assignment) -> int:
    """The number of partitions of all topics together."""
    return sum(map(len, target.values()))


def owners(targets: Mapping[str, Assignment]) -> dict[tuple[bytes, int], str]:
    """Who has which partition; fails where two have the same."""
    counted = Counter(place for target in targets.values() for place in places(target))
    assert not counted or max(counted.values()) == 1, counted
    return {place: member_id for member_id in targets for place in places(targets[member_id])}


def present(spec: GroupSpec) -> dict[str, Assignment]:
    """The targets that the group has."""
    return {member_id: member.assignment for member_id, member in spec.members.items()}


def kept(spec: GroupSpec, targets: Mapping[str, Assignment]) -> int:
    """How many partitions stay with the member that had them."""
    before = owners(present(spec))
    return sum(before.get(place) == member_id for place, member_id in owners(targets).items())


def moved(spec: GroupSpec, targets: Mapping[str, Assignment]) -> int:
    """How many partitions change from one member to another."""
    before = owners(present(spec))
    after = owners(targets)
    return sum(after[place] != before[place] for place in before.keys() & after.keys())


def group(
    subscriptions: Mapping[str, frozenset[bytes]], targets: Mapping[str, Assignment] | None = None
) -> GroupSpec:
    """A group of dynamic members, with the targets that they have."""
    held = targets or {}
    members = {
        member_id: MemberSpec(
            member_id=member_id,
            subscribed_topic_ids=topic_ids,
            assignment=held.get(member_id, {}),
        )
        for member_id, topic_ids in subscriptions.items()
    }
    return GroupSpec(members=members, is_homogeneous=len(set(subscriptions.values())) <= 1)


def with_targets(spec: GroupSpec, targets: Mapping[str, Assignment]) -> GroupSpec:
    """The group once the targets are its present ones."""
    members = {
        member_id: replace(member, assignment=targets[member_id])
        for member_id, member in spec.members.items()
    }
    return replace(spec, members=members)
