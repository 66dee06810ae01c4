"""The range assignor: runs of partitions, equal for equal topics."""

from itertools import chain

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from odradek.coordinator.assignors.assignment import GroupSpec
from odradek.coordinator.assignors.range import RangeAssignor
from tests.support.assigned_groups import Topics, group, groups, small_id
from tests.support.lengths import by_length

RANGE = RangeAssignor()
T1, T2 = small_id(2), small_id(3)
BOTH = frozenset({T1, T2})
examples = settings(max_examples=by_length(20, 3000), deadline=None)
random_groups = given(st.booleans().flatmap(lambda same: groups(is_homogeneous=same)))


def static(spec: GroupSpec, instances: dict[str, str]) -> GroupSpec:
    members = {
        member_id: replace(member, instance_id=instances.get(member_id))
        for member_id, member in spec.members.items()
    }
    return replace(spec, members=members)


def test_the_first_members_by_id_have_the_longer_runs() -> None:
    targets = RANGE.assign(group({"b": BOTH, "a": BOTH}), Topics({T1: 3, T2: 3}))
    assert targets == {
        "a": {T1: frozenset({0, 1}), T2: frozenset({0, 1})},
        "b": {T1: frozenset({2}), T2: frozenset({2})},
    }


def test_topics_are_in_the_order_of_their_ids() -> None:
    counts = {small_id(number): 1 for number in range(2, 50)}
    targets = RANGE.assign(group({"a": frozenset(counts)}), Topics(counts))
    assert list(targets["a"]) == list(counts)


def test_members_without_a_partition_are_the_last_ones() -> None:
    targets = RANGE.assign(group(dict.fromkeys("abcd", BOTH)), Topics({T1: 2, T2: 1}))
    assert targets == {
        "a": {T1: frozenset({0}), T2: frozenset({0})},
        "b": {T1: frozenset({1})},
        "c": {},
        "d": {},
    }


def test_a_run_counts_the_subscribers_of_its_topic_only() -> None:
    spec = group({"a": frozenset({T1}), "b": BOTH, "c": frozenset({T2})})
    targets = RANGE.assign(spec, Topics({T1: 4, T2: 3}))
    assert targets == {
        "a": {T1: frozenset({0, 1})},
        "b": {T1: frozenset({2, 3}), T2: frozenset({0, 1})},
        "c": {T2: frozenset({2})},
    }


def test_static_members_come_before_the_others() -> None:
    spec = static(group(dict.fromkeys("abc", frozenset({T1}))), {"b": "z", "c": "y"})
    targets = RANGE.assign(spec, Topics({T1: 3}))
    assert targets == {"c": {T1: {0}}, "b": {T1: {1}}, "a": {T1: {2}}}


def test_a_static_member_with_a_new_member_id_keeps_its_partitions() -> None:
    topics = Topics({T1: 7, T2: 3})
    before = static(group({"m0": BOTH, "m1": BOTH}), {"m0": "i0", "m1": "i1"})
    after = static(group({"m3": BOTH, "m2": BOTH}), {"m3": "i0", "m2": "i1"})
    old, new = RANGE.assign(before, topics), RANGE.assign(after, topics)
    assert (new["m3"], new["m2"]) == (old["m0"], old["m1"])


def test_names_are_in_the_order_of_javas_strings() -> None:
    astral, below = "\U0001f600", "\uff5e"  # by UTF-16: d83d < ff5e
    targets = RANGE.assign(group(dict.fromkeys((below, astral), BOTH)), Topics({T1: 1, T2: 1}))
    assert targets == {astral: {T1: {0}, T2: {0}}, below: {}}


@examples
@random_groups
def test_runs_have_no_gaps_and_differ_by_one_at_most(case: tuple[GroupSpec, Topics]) -> None:
    spec, topics = case
    targets = RANGE.assign(spec, topics)
    for topic_id, count in topics.counts.items():
        takers = [
            each for each, member in spec.members.items() if topic_id in member.subscribed_topic_ids
        ]
        runs = sorted(sorted(targets[each].get(topic_id, ())) for each in takers)
        assert list(chain.from_iterable(runs)) == list(range(count if takers else 0))
        lengths = [len(run) for run in runs]
        assert not lengths or max(lengths) - min(lengths) <= 1
        filled = [length for length in lengths if length]
        assert filled == sorted(filled, reverse=True)


@examples
@random_groups
def test_topics_with_equal_counts_and_subscribers_are_divided_alike(
    case: tuple[GroupSpec, Topics],
) -> None:
    spec, topics = case
    targets = RANGE.assign(spec, topics)

    def kind(topic_id: bytes) -> tuple[int, frozenset[str]]:
        takers = (
            each for each in spec.members if topic_id in spec.members[each].subscribed_topic_ids
        )
        return topics.counts[topic_id], frozenset(takers)

    for one in topics.counts:
        for other in topics.counts:
            if kind(one) == kind(other):
                for target in targets.values():
                    assert target.get(one) == target.get(other)
