"""Which partitions a group's page lists: those that are read, and those that have an offset."""

from types import SimpleNamespace
from typing import Any

from odradek.broker.console.groups.described import AssignedPartitions, GroupMember
from odradek.broker.console.groups.offsets import owners_of, places_of

TOPICS = ("a", "b", "c")
CALL: Any = SimpleNamespace(
    sliced=lambda items: items,
    observed=SimpleNamespace(broker=SimpleNamespace(metadata=SimpleNamespace(topics=TOPICS))),
)


def member(name: str, **partitions: list[int]) -> GroupMember:
    assigned = [
        AssignedPartitions(topic=topic, partitions=of_topic)
        for topic, of_topic in partitions.items()
    ]
    return GroupMember(member_id=name, client_id="c", host="/h", assignment=assigned)


def places(*, read: Any = (), committed: Any = (), pending: Any = ()) -> list[tuple[str, int]]:
    offsets = SimpleNamespace(of_group=lambda _: dict(committed), pending=lambda _: set(pending))
    group: Any = SimpleNamespace(group_id="g")
    state: Any = SimpleNamespace(offsets=offsets)
    return list(places_of(CALL, group, state, {place: ["m"] for place in read}))


def test_a_partition_may_have_several_readers() -> None:
    owners = owners_of(CALL, [member("m", a=[0, 1], b=[0]), member("n", a=[1])])
    assert owners == {("a", 0): ["m"], ("a", 1): ["m", "n"], ("b", 0): ["m"]}


def test_a_partition_is_listed_if_it_is_read_or_has_an_offset_even_a_pending_one() -> None:
    assert places() == []
    assert places(read=[("b", 1)]) == [("b", 1)]
    assert places(committed={"b": {1: None}}) == [("b", 1)]
    assert places(pending=[("b", 1)]) == [("b", 1)]


def test_partitions_are_listed_once_and_in_order() -> None:
    found = places(
        read=[("b", 10), ("b", 9), ("a", 0)],
        committed={"b": {9: None, 2: None}, "c": {0: None}},
        pending=[("b", 2), ("a", 1)],
    )
    assert found == [("a", 0), ("a", 1), ("b", 2), ("b", 9), ("b", 10), ("c", 0)]


def test_partitions_of_topics_that_are_gone_are_not_listed() -> None:
    gone = ("gone", 0)
    assert places(read=[gone], committed={"gone": {0: None}}, pending=[gone, ("a", 0)]) == [
        ("a", 0)
    ]
