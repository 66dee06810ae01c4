"""The assignors give the same results for random groups as Apache Kafka's."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from odradek.coordinator.assignors import ASSIGNORS
from odradek.coordinator.assignors.assignment import AssignorError, GroupSpec
from odradek.coordinator.assignors.simple import SimpleAssignor
from tests.support.assigned_groups import Topics, group, groups, load, moved, small_id, small_ids
from tests.support.kafka_assignors import KafkaAssignors
from tests.support.lengths import SEED, by_length

pytestmark = pytest.mark.java

RANGE, UNIFORM = ASSIGNORS["range"], ASSIGNORS["uniform"]
SIMPLE = SimpleAssignor()
T1, T2 = small_id(2), small_id(3)
examples = settings(
    max_examples=by_length(60, 10_000),
    deadline=None,
)


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaAssignors]:
    with KafkaAssignors() as process:
        yield process


@examples
@given(case=st.booleans().flatmap(lambda same: groups(is_homogeneous=same)))
def test_range_is_equal_in_whatever_order_kafka_meets_the_members(
    kafka: KafkaAssignors, case: tuple[GroupSpec, Topics]
) -> None:
    assert RANGE.assign(*case) == kafka.assign("range", *case, is_ordered=False)


@examples
@given(case=groups(is_homogeneous=False))
def test_uniform_is_equal_for_different_subscriptions_when_members_come_by_id(
    kafka: KafkaAssignors, case: tuple[GroupSpec, Topics]
) -> None:
    assert UNIFORM.assign(*case) == kafka.assign("uniform", *case, is_ordered=True)


@examples
@given(case=groups(small_ids, is_homogeneous=True))
def test_uniform_is_equal_for_equal_subscriptions_when_members_and_topics_come_by_id(
    kafka: KafkaAssignors, case: tuple[GroupSpec, Topics]
) -> None:
    assert UNIFORM.assign(*case) == kafka.assign("uniform", *case, is_ordered=True)


@examples
@given(case=groups(is_homogeneous=True))
def test_uniform_has_the_same_loads_and_as_many_moves_in_the_order_of_a_hash_table(
    kafka: KafkaAssignors, case: tuple[GroupSpec, Topics]
) -> None:
    ours, kafkas = UNIFORM.assign(*case), kafka.assign("uniform", *case, is_ordered=False)
    assert sorted(map(load, ours.values())) == sorted(map(load, kafkas.values()))
    assert moved(case[0], ours) == moved(case[0], kafkas)


@examples
@given(case=st.booleans().flatmap(lambda same: groups(is_homogeneous=same)))
def test_simple_gives_each_member_as_many_partitions_when_members_come_by_id(
    kafka: KafkaAssignors, case: tuple[GroupSpec, Topics]
) -> None:
    # Where subscriptions differ, Kafka's leaves topics to members that nobody subscribes to.
    members = case[0].members.values()
    wanted = frozenset[bytes]().union(*(member.subscribed_topic_ids for member in members))
    assume(all(wanted.issuperset(member.assignment) for member in members))
    ours, kafkas = SIMPLE.assign(*case), kafka.assign("simple", *case, is_ordered=True)
    assert {name: load(one) for name, one in ours.items()} == {
        name: load(one) for name, one in kafkas.items()
    }


def large_group(rng: random.Random) -> tuple[GroupSpec, Topics]:
    """Up to 60 members on up to twelve topics; what is held is held by some of them at random."""
    counts = {rng.randbytes(16): rng.choice([1, 5, 20, 60, 200]) for _ in range(rng.randint(2, 12))}
    ids = [f"member-{number:02d}" for number in range(rng.randint(2, 60))]
    share, held_share, holders = rng.random(), rng.random(), ids[: rng.randint(1, len(ids))]
    subscriptions = {
        member_id: frozenset(each for each in counts if rng.random() < share) for member_id in ids
    }
    targets: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in ids}
    for topic_id, count in counts.items():
        owners = [rng.choice(holders) if rng.random() < held_share else None for _ in range(count)]
        for owner in {*owners} - {None}:
            held = frozenset(partition for partition in range(count) if owners[partition] == owner)
            targets[str(owner)][topic_id] = held
    return group(subscriptions, targets), Topics(counts)


def test_large_groups_get_equal_targets_from_both_assignors(kafka: KafkaAssignors) -> None:
    rng = random.Random(SEED)
    for _ in range(by_length(60, 10_000)):
        spec, topics = large_group(rng)
        for name, assignor in ASSIGNORS.items():
            # With equal subscriptions Kafka's order of topics would be its hash table's.
            if name == "range" or not spec.is_homogeneous:
                expected = kafka.assign(name, spec, topics, is_ordered=True)
                assert assignor.assign(spec, topics) == expected


@pytest.mark.parametrize("name", ["range", "uniform"])
@pytest.mark.parametrize("other", [{T1}, {T1, T2}])
def test_a_topic_that_is_not_there_is_refused_in_the_same_words(
    kafka: KafkaAssignors, name: str, other: set[bytes]
) -> None:
    spec, topics = group({"a": frozenset({T1, T2}), "b": frozenset(other)}), Topics({T1: 3})
    with pytest.raises(AssignorError) as ours:
        ASSIGNORS[name].assign(spec, topics)
    with pytest.raises(AssignorError) as kafkas:
        kafka.assign(name, spec, topics, is_ordered=True)
    assert ours.value.message == kafkas.value.message


@pytest.mark.parametrize("count", [900, 1000, 1001, 3000])
def test_a_thousand_members_and_one_more_have_the_same_targets(
    kafka: KafkaAssignors, count: int
) -> None:
    topics = Topics({T1: count})
    ids = [f"member-{number:04d}" for number in range(1001)]
    old = UNIFORM.assign(group(dict.fromkeys(ids[1:], frozenset({T1}))), topics)
    spec = group(dict.fromkeys(ids, frozenset({T1})), old)
    assert UNIFORM.assign(spec, topics) == kafka.assign("uniform", spec, topics, is_ordered=True)
