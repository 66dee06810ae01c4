"""The uniform assignor: even loads first, then as few moves as they allow."""

from itertools import permutations

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from odradek.coordinator.assignors.assignment import Assignment, AssignorError, GroupSpec
from odradek.coordinator.assignors.uniform import UniformAssignor
from tests.support.assigned_groups import (
    Topics,
    group,
    groups,
    kept,
    load,
    moved,
    small_id,
)
from tests.support.lengths import by_length

UNIFORM = UniformAssignor()
T1, T2, T3 = (small_id(number) for number in (2, 3, 4))
BOTH = frozenset({T1, T2})
examples = settings(max_examples=by_length(25, 5000), deadline=None)
homogeneous = given(groups(is_homogeneous=True))
heterogeneous = given(groups(is_homogeneous=False))


def most_that_can_be_kept(spec: GroupSpec, topics: Topics) -> int:
    """Each keeps its share, and as many as there are extra ones one more."""
    topic_ids = next(iter(spec.members.values())).subscribed_topic_ids
    share, extra_ones = divmod(sum(topics.counts[each] for each in topic_ids), len(spec.members))
    held = [
        sum(len(member.assignment.get(topic_id, ())) for topic_id in topic_ids)
        for member in spec.members.values()
    ]
    above = sum(count > share for count in held)
    return sum(min(count, share) for count in held) + min(above, extra_ones)


@examples
@homogeneous
def test_with_equal_subscriptions_loads_differ_by_one_at_most(
    case: tuple[GroupSpec, Topics],
) -> None:
    loads = [load(target) for target in UNIFORM.assign(*case).values()]
    assert max(loads) - min(loads) <= 1


@examples
@homogeneous
def test_with_equal_subscriptions_all_is_kept_that_even_loads_allow(
    case: tuple[GroupSpec, Topics],
) -> None:
    spec, topics = case
    assert kept(spec, UNIFORM.assign(spec, topics)) == most_that_can_be_kept(spec, topics)


@examples
@homogeneous
def test_both_builders_give_equal_loads_for_equal_subscriptions(
    case: tuple[GroupSpec, Topics],
) -> None:
    spec, topics = case
    searched = UNIFORM.assign(replace(spec, is_homogeneous=False), topics)
    computed = UNIFORM.assign(spec, topics)
    assert sorted(map(load, searched.values())) == sorted(map(load, computed.values()))
    # Several topics may cost the search a move or two: it evens them out one after the other.
    assert kept(spec, searched) <= kept(spec, computed)
    if len(next(iter(spec.members.values())).subscribed_topic_ids) == 1:
        assert kept(spec, searched) == kept(spec, computed)


@examples
@heterogeneous
def test_with_different_subscriptions_no_single_move_improves_the_balance(
    case: tuple[GroupSpec, Topics],
) -> None:
    spec, topics = case
    targets = UNIFORM.assign(spec, topics)
    for giver, taker in permutations(targets, 2):
        if load(targets[giver]) - load(targets[taker]) > 1:
            assert not targets[giver].keys() & spec.members[taker].subscribed_topic_ids


def settled(subscriptions: dict[str, frozenset[bytes]], topics: Topics) -> dict[str, Assignment]:
    return UNIFORM.assign(group(subscriptions), topics)


def test_a_new_member_takes_its_share_and_the_others_exchange_nothing() -> None:
    topics = Topics({T1: 6, T2: 6})
    old = settled(dict.fromkeys("abc", BOTH), topics)
    spec = group(dict.fromkeys("0abc", BOTH), old)
    new = UNIFORM.assign(spec, topics)
    assert [load(new[each]) for each in "0abc"] == [3, 3, 3, 3]
    assert moved(spec, new) == 3


def test_partitions_of_a_removed_member_are_shared_and_no_others_move() -> None:
    topics = Topics({T1: 6, T2: 6})
    old = settled(dict.fromkeys("abcd", BOTH), topics)
    spec = group(dict.fromkeys("abd", BOTH), old)
    new = UNIFORM.assign(spec, topics)
    assert [load(new[each]) for each in "abd"] == [4, 4, 4]
    assert moved(spec, new) == 0


def test_new_partitions_go_to_the_least_loaded_and_nothing_moves() -> None:
    subscriptions = dict.fromkeys("abc", frozenset({T1}))
    old = settled(subscriptions, Topics({T1: 4}))
    spec = group(subscriptions, old)
    new = UNIFORM.assign(spec, Topics({T1: 6}))
    assert [load(target) for target in new.values()] == [2, 2, 2]
    assert moved(spec, new) == 0


def test_the_extra_partitions_stay_with_those_who_have_them() -> None:
    held = {"a": {T1: {0}}, "b": {T1: {1, 2}}, "c": {T1: {3}}, "d": {T1: {4, 5}}}
    old = {each: {T1: frozenset(target[T1])} for each, target in held.items()}
    spec = group(dict.fromkeys("abcd", frozenset({T1})), old)
    new = UNIFORM.assign(spec, Topics({T1: 6}))
    assert all(new[each] is old[each] for each in "abcd")


def test_the_topic_with_most_partitions_per_subscriber_is_distributed_first() -> None:
    subscriptions = {"a": BOTH, "b": frozenset({T1})}
    # two partitions a subscriber in both topics: T2 has fewer subscribers
    assert settled(subscriptions, Topics({T1: 4, T2: 2})) == {
        "a": {T1: {3}, T2: {0, 1}},
        "b": {T1: {0, 1, 2}},
    }
    # three of them in T2
    assert settled(subscriptions, Topics({T1: 4, T2: 3})) == {
        "a": {T2: {0, 1, 2}},
        "b": {T1: {0, 1, 2, 3}},
    }


def test_topics_of_equal_rank_are_in_the_order_of_javas_ids() -> None:
    negative, positive = b"\x80" + bytes(15), small_id(2)
    both = frozenset({negative, positive})
    subscriptions = {"a": both, "b": both, "c": frozenset({positive}), "d": frozenset({negative})}
    targets = settled(subscriptions, Topics({negative: 1, positive: 1}))
    assert targets == {"a": {negative: {0}}, "b": {positive: {0}}, "c": {}, "d": {}}


def test_loads_may_differ_from_topic_to_topic() -> None:
    """Kafka's promise ends here: no single move helps, a chain of two would."""
    old = {
        "a": {T1: frozenset(range(9))},
        "b": {T1: frozenset({9}), T2: frozenset(range(9))},
        "c": {T2: frozenset(range(9, 20))},
    }
    spec = group({"a": frozenset({T1}), "b": BOTH, "c": frozenset({T2})}, old)
    targets = UNIFORM.assign(spec, Topics({T1: 10, T2: 20}))
    assert [load(targets[each]) for each in "abc"] == [9, 10, 11]
    assert moved(spec, targets) == 0


def test_members_without_partitions_of_the_topic_are_skipped_as_givers() -> None:
    """The busiest have none of T2; the next ones stand several levels lower."""
    old = {
        "a": {T1: frozenset(range(9))},
        "b": {T1: frozenset(range(9, 17))},
        "c": {T2: frozenset(range(4))},
    }
    everything = frozenset({T1, T2, T3})
    spec = group({"a": everything, "b": everything, "c": BOTH, "d": frozenset({T2})}, old)
    targets = UNIFORM.assign(spec, Topics({T1: 17, T2: 4, T3: 1}))
    assert load(targets["d"]) >= 2
    loads = [load(targets[each]) for each in "abc"]
    assert max(loads) - min(loads) <= 1


def test_a_member_that_ends_with_its_old_target_gets_the_same_object() -> None:
    """c gets a free partition of T2, and a takes it after giving two partitions of T1 to b."""
    old: dict[str, Assignment] = {
        "a": {T1: frozenset({0, 1, 2})},
        "c": {T2: frozenset({1, 2, 3})},
    }
    spec = group({"a": BOTH, "b": frozenset({T1}), "c": BOTH}, old)
    targets = UNIFORM.assign(spec, Topics({T1: 3, T2: 5}))
    assert [load(targets[each]) for each in "abc"] == [3, 2, 3]
    assert targets["c"] is old["c"]


def test_a_target_with_a_partition_that_does_not_exist_is_refused() -> None:
    spec = group({"a": frozenset({T1}), "b": BOTH}, {"a": {T1: frozenset({3})}})
    with pytest.raises(AssignorError, match=r"a has partition 3 of topic .*, which has 3"):
        UNIFORM.assign(spec, Topics({T1: 3, T2: 1}))
    same = group({"a": BOTH}, {"a": {T1: frozenset({3})}})
    with pytest.raises(AssignorError, match="left unassigned"):
        UNIFORM.assign(same, Topics({T1: 3, T2: 1}))
