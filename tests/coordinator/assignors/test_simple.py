"""The simple assignor of share groups."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from odradek.coordinator.assignors.assignment import Assignment, GroupSpec
from odradek.coordinator.assignors.simple import SimpleAssignor
from tests.support.assigned_groups import (
    Topics,
    group,
    groups,
    load,
    places,
    small_id,
    with_targets,
)

SIMPLE = SimpleAssignor()
T1, T2 = small_id(2), small_id(3)
any_group = st.booleans().flatmap(lambda same: groups(is_homogeneous=same))


def readers_of(targets: dict[str, Assignment]) -> Counter[tuple[bytes, int]]:
    return Counter(place for target in targets.values() for place in places(target))


def subscribed(spec: GroupSpec) -> frozenset[bytes]:
    return frozenset[bytes]().union(*(m.subscribed_topic_ids for m in spec.members.values()))


@given(case=any_group)
def test_every_partition_of_a_subscribed_topic_has_a_reader(case: tuple[GroupSpec, Topics]) -> None:
    spec, topics = case
    found = readers_of(SIMPLE.assign(spec, topics))
    assert found.keys() == {
        (topic_id, partition)
        for topic_id in subscribed(spec)
        for partition in range(topics.counts[topic_id])
    }


@given(case=any_group)
def test_a_member_reads_only_topics_that_it_subscribes_to(case: tuple[GroupSpec, Topics]) -> None:
    spec, topics = case
    for member_id, target in SIMPLE.assign(spec, topics).items():
        assert target.keys() <= spec.members[member_id].subscribed_topic_ids


@given(case=groups(is_homogeneous=True))
def test_loads_differ_by_one_at_most(case: tuple[GroupSpec, Topics]) -> None:
    loads = [load(target) for target in SIMPLE.assign(*case).values()]
    assert max(loads) - min(loads) <= 1


@given(case=any_group)
def test_a_second_assignment_changes_nothing(case: tuple[GroupSpec, Topics]) -> None:
    spec, topics = case
    first = SIMPLE.assign(spec, topics)
    second = SIMPLE.assign(with_targets(spec, first), topics)
    assert all(second[member_id] is first[member_id] for member_id in first)


@given(case=any_group, data=st.data())
def test_only_assignable_partitions_are_assigned(
    case: tuple[GroupSpec, Topics], data: st.DataObject
) -> None:
    spec, topics = case
    assignable = {
        topic_id: data.draw(st.frozensets(st.integers(0, max(count - 1, 0))))
        for topic_id, count in topics.counts.items()
    }
    found = readers_of(SIMPLE.assign(replace(spec, assignable=assignable), topics))
    assert found.keys() == {
        (topic_id, partition)
        for topic_id in subscribed(spec)
        for partition in assignable[topic_id]
        if partition < topics.counts[topic_id]
    }


def test_more_members_than_partitions_read_the_same_partition() -> None:
    spec = group(dict.fromkeys("abc", frozenset({T1})))
    targets = SIMPLE.assign(spec, Topics({T1: 2}))
    assert set(readers_of(targets).values()) == {2}
    assert sorted(load(target) for target in targets.values()) == [1, 1, 2]


def test_members_keep_partitions_when_another_one_joins() -> None:
    held = {"a": {T1: frozenset({0, 1})}, "b": {T1: frozenset({2, 3})}}
    spec = group(dict.fromkeys("abc", frozenset({T1})), held)
    targets = SIMPLE.assign(spec, Topics({T1: 4}))
    assert targets["a"][T1] <= {0, 1}
    assert targets["b"][T1] <= {2, 3}
    assert targets["c"]


def test_each_topic_is_shared_among_its_subscribers() -> None:
    spec = group({"a": frozenset({T1, T2}), "b": frozenset({T2})})
    targets = SIMPLE.assign(spec, Topics({T1: 3, T2: 2}))
    assert targets["a"][T1] == {0, 1, 2}
    assert load(targets["b"]) == 1
