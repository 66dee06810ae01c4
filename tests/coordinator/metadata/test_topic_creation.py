"""Creating topics and partitions: what is refused, in which order, and what is written."""

from collections.abc import Mapping

import pytest

from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.coordinator.metadata.topic_creation import (
    CreatedTopic,
    MorePartitions,
    NewTopic,
    TopicRules,
    create_partitions,
    create_topics,
)
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.cluster_metadata import (
    ConfigRecord,
    PartitionRecord,
    TopicRecord,
)
from tests.support.metadata import DIRECTORY, NODE, Metadata

OTHER_DIRECTORY = bytes(15) + b"\xd2"


def refusal_of(metadata: Metadata, *wishes: NewTopic) -> ApiError:
    """The one refusal among the replies."""
    refused = [r for r in metadata.create(*wishes).values() if isinstance(r, ApiError)]
    assert len(refused) == 1
    return refused[0]


def growth(metadata: Metadata, wish: MorePartitions) -> ApiError | None:
    return metadata.commit(create_partitions(metadata.state, [wish], metadata.rules))[wish.name]


@pytest.fixture
def metadata() -> Metadata:
    return Metadata()


def test_a_topic_is_written_as_topic_configs_partitions(metadata: Metadata) -> None:
    reply = metadata.create(
        NewTopic(name="t", partition_count=2, configs={"retention.ms": "7", "x": "y"})
    )["t"]
    assert isinstance(reply, CreatedTopic)
    assert (reply.partition_count, reply.replication_factor) == (2, 1)
    kinds = [type(record.value) for record in metadata.last_records]
    assert kinds == [TopicRecord, ConfigRecord, ConfigRecord, PartitionRecord, PartitionRecord]
    topic = metadata.state.topics["t"]
    assert metadata.state.topics.by_id[reply.topic_id] is topic
    assert metadata.state.configs.of_topic("t") == {"retention.ms": "7", "x": "y"}
    assert list(topic.partitions) == [0, 1]
    first = topic.partitions[0]
    assert (first.leader, first.leader_epoch, first.isr, first.directories) == (
        NODE,
        0,
        (NODE,),
        (DIRECTORY,),
    )


def test_counts_that_are_left_open_are_the_brokers_defaults(metadata: Metadata) -> None:
    reply = metadata.create(NewTopic(name="t"))["t"]
    assert isinstance(reply, CreatedTopic)
    assert reply.partition_count == metadata.rules.default_partitions


def test_validate_only_answers_and_writes_nothing(metadata: Metadata) -> None:
    outcome = create_topics(
        metadata.state, [NewTopic(name="t")], metadata.rules, validate_only=True
    )
    assert isinstance(outcome.reply["t"], CreatedTopic)
    assert outcome.records == ()


def test_each_topic_has_an_id_of_its_own(metadata: Metadata) -> None:
    metadata.create(NewTopic(name="a"), NewTopic(name="b"))
    assert len(metadata.state.topics.by_id) == 2


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a b", "ä", "a/b", "a\n", "x" * 250, "a:b", "\x00"]
)
def test_an_illegal_name_is_refused(metadata: Metadata, name: str) -> None:
    assert refusal_of(metadata, NewTopic(name=name)).code is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "x" * 249, "...", "-"])
def test_a_legal_name_is_taken(metadata: Metadata, name: str) -> None:
    assert isinstance(metadata.create(NewTopic(name=name))[name], CreatedTopic)


def test_a_topic_that_exists_is_not_created_again(metadata: Metadata) -> None:
    metadata.create(NewTopic(name="a.b"))
    assert refusal_of(metadata, NewTopic(name="a.b")).code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_names_that_metrics_cannot_tell_apart_collide(metadata: Metadata) -> None:
    metadata.create(NewTopic(name="a.b"), NewTopic(name="ab"))
    refusal = refusal_of(metadata, NewTopic(name="a_b"))
    assert refusal.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "collides with existing topic: a.b" in refusal.message
    metadata.delete("a.b")
    assert isinstance(metadata.create(NewTopic(name="a_b"))["a_b"], CreatedTopic)


def test_a_name_that_occurs_twice_is_refused_and_the_others_are_created(
    metadata: Metadata,
) -> None:
    wishes = [NewTopic(name="a"), NewTopic(name="b"), NewTopic(name="a", partition_count=2)]
    reply = metadata.create(*wishes)
    assert isinstance(reply["a"], ApiError)
    assert reply["a"].code is ErrorCode.INVALID_REQUEST
    assert list(metadata.state.topics) == ["b"]


def test_the_metadata_log_is_no_topic_to_create(metadata: Metadata) -> None:
    refusal = refusal_of(metadata, NewTopic(name="__cluster_metadata"))
    assert refusal.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("count", [0, -2, -100])
def test_a_partition_count_below_one_is_refused(metadata: Metadata, count: int) -> None:
    refusal = refusal_of(metadata, NewTopic(name="t", partition_count=count))
    assert refusal.code is ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("factor", [0, -2, 2, 3])
def test_a_replication_factor_that_one_broker_cannot_have_is_refused(
    metadata: Metadata, factor: int
) -> None:
    refusal = refusal_of(metadata, NewTopic(name="t", replication_factor=factor))
    assert refusal.code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert "replication factor" in refusal.message


def test_the_replication_factor_is_looked_at_before_the_partition_count(
    metadata: Metadata,
) -> None:
    refusal = refusal_of(metadata, NewTopic(name="t", replication_factor=0, partition_count=0))
    assert refusal.code is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize(
    ("assignments", "text"),
    [
        ([(0, [])], "empty replica list"),
        ([(0, [7])], "broker 7"),
        ([(0, [NODE, NODE])], "more than once"),
        ([(0, [NODE, NODE, 7, NODE + 1])], "more than once"),  # the lowest id that is wrong
        ([(0, [NODE, 7, NODE, -3, 5])], "broker -3"),
        ([(0, [NODE]), (0, [NODE])], "multiple manual partition assignments for partition 0"),
        ([(0, [NODE]), (2, [NODE])], "consecutive 0-based"),
        ([(1, [NODE])], "consecutive 0-based"),
    ],
)
def test_a_manual_assignment_that_cannot_be_is_refused(
    metadata: Metadata, assignments: list[tuple[int, list[int]]], text: str
) -> None:
    refusal = refusal_of(metadata, NewTopic(name="t", assignments=assignments))
    assert refusal.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert text in refusal.message


def test_a_manual_assignment_to_this_broker_is_taken(metadata: Metadata) -> None:
    metadata.create(NewTopic(name="t", assignments=[(1, [NODE]), (0, [NODE])]))
    assert list(metadata.state.topics["t"].partitions) == [0, 1]


@pytest.mark.parametrize("counts", [{"partition_count": 1}, {"replication_factor": 1}])
def test_a_manual_assignment_excludes_counts(metadata: Metadata, counts: dict[str, int]) -> None:
    wish = NewTopic(name="t", assignments=[(0, [NODE])], **counts)  # type: ignore[arg-type] # ints
    assert refusal_of(metadata, wish).code is ErrorCode.INVALID_REQUEST


def test_configs_are_judged_before_counts(metadata: Metadata) -> None:
    def refuse(overrides: Mapping[str, str]) -> None:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"not {dict(overrides)}")

    rules = TopicRules(
        node_id=NODE,
        directories=[DIRECTORY],
        default_partitions=1,
        default_replication_factor=1,
        check_configs=refuse,
    )
    wish = NewTopic(name="t", partition_count=0, configs={"a": "b"})
    reply = create_topics(metadata.state, [wish], rules).reply["t"]
    assert isinstance(reply, ApiError)
    assert reply.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("value", [None, "x" * 32768])
def test_a_config_that_is_null_or_endless_is_refused(metadata: Metadata, value: str | None) -> None:
    refusal = refusal_of(metadata, NewTopic(name="t", configs={"a": value}))
    assert refusal.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize("value", [None, "1"])
def test_configs_of_a_topic_are_looked_at_in_steps(metadata: Metadata, value: str | None) -> None:
    wish = NewTopic(name="t", configs={f"made.up.{number}": value for number in range(300)})
    steps: list[object] = []
    create_topics(metadata.state, [wish], metadata.rules, step=lambda: steps.append(None))
    assert len(steps) > 300


@pytest.mark.parametrize("count", [10_001, 10_000, 2**31 - 1])
def test_too_many_partitions_at_once_are_refused_and_nothing_is_made(
    metadata: Metadata, count: int
) -> None:
    """10,000 partitions and their topic are 10,001 records: one more than an operation may have."""
    with pytest.raises(ApiError) as refusal:
        metadata.create(NewTopic(name="t", partition_count=count))
    assert refusal.value.code is ErrorCode.POLICY_VIOLATION
    assert metadata.state.topics == {}


@pytest.mark.parametrize("name", ["twice", "__cluster_metadata"])
def test_partitions_of_a_name_that_is_refused_do_not_count(metadata: Metadata, name: str) -> None:
    wishes = [NewTopic(name=each, partition_count=5001) for each in ("twice", "twice", name)]
    reply = metadata.create(*wishes, NewTopic(name="t"))
    assert [name for name, each in reply.items() if isinstance(each, CreatedTopic)] == ["t"]


def test_new_partitions_go_to_the_log_directory_that_has_the_fewest() -> None:
    metadata = Metadata(directories=[DIRECTORY, OTHER_DIRECTORY])
    metadata.create(NewTopic(name="a", partition_count=3))
    metadata.create(NewTopic(name="b", partition_count=3))
    places = [
        partition.directories
        for topic in metadata.state.topics.values()
        for partition in topic.partitions.values()
    ]
    assert places.count((DIRECTORY,)) == places.count((OTHER_DIRECTORY,)) == 3


def test_without_a_log_directory_no_topic_is_created() -> None:
    metadata = Metadata(directories=[])
    assert refusal_of(metadata, NewTopic(name="a")).code is ErrorCode.KAFKA_STORAGE_ERROR


def test_the_default_replication_factor_is_not_made_smaller() -> None:
    metadata = Metadata(default_replication_factor=3)
    assert refusal_of(metadata, NewTopic(name="a")).code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_configs_of_a_deleted_topic_are_not_inherited_by_its_successor(
    metadata: Metadata,
) -> None:
    first = metadata.create(NewTopic(name="t", configs={"a": "b"}))["t"]
    metadata.delete("t")
    assert metadata.state.configs.names(ConfigResourceType.TOPIC) == []
    second = metadata.create(NewTopic(name="t"))["t"]
    assert isinstance(first, CreatedTopic)
    assert isinstance(second, CreatedTopic)
    assert first.topic_id != second.topic_id
    assert metadata.state.configs.of_topic("t") == {}


# -- more partitions


def test_partitions_are_added_behind_those_that_are_there(metadata: Metadata) -> None:
    metadata.create(NewTopic(name="t", partition_count=2))
    assert growth(metadata, MorePartitions(name="t", count=4)) is None
    assert list(metadata.state.topics["t"].partitions) == [0, 1, 2, 3]
    assert len(metadata.last_records) == 2


@pytest.mark.parametrize(
    ("wish", "code", "text"),
    [
        (MorePartitions(name="u", count=5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "u"),
        (MorePartitions(name="t", count=3), ErrorCode.INVALID_PARTITIONS, "already has 3"),
        (MorePartitions(name="t", count=2), ErrorCode.INVALID_PARTITIONS, "currently has 3"),
        (MorePartitions(name="t", count=-1), ErrorCode.INVALID_PARTITIONS, "currently has 3"),
        (MorePartitions(name="t", count=2**31 - 1), ErrorCode.POLICY_VIOLATION, "Excessively"),
        (
            MorePartitions(name="t", count=5, assignments=[[NODE]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "add 2 additional partition(s), but only 1",
        ),
        (
            MorePartitions(name="t", count=4, assignments=[[NODE, 2]]),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "broker 2",
        ),
    ],
)
def test_growth_that_cannot_be_is_refused(
    metadata: Metadata, wish: MorePartitions, code: ErrorCode, text: str
) -> None:
    metadata.create(NewTopic(name="t", partition_count=3))
    refusal = growth(metadata, wish)
    assert refusal is not None
    assert refusal.code is code
    assert text in refusal.message
    assert len(metadata.state.topics["t"].partitions) == 3


def test_added_partitions_can_be_assigned_by_hand(metadata: Metadata) -> None:
    metadata.create(NewTopic(name="t", partition_count=1))
    wish = MorePartitions(name="t", count=3, assignments=[[NODE], [NODE]])
    assert growth(metadata, wish) is None
    assert len(metadata.state.topics["t"].partitions) == 3


def test_too_many_partitions_are_refused_before_they_are_made(metadata: Metadata) -> None:
    """20 KB of topics, each to grow by 10,000 partitions, would be gigabytes of records."""
    names = ["a", "b", "c"]
    metadata.create(*(NewTopic(name=name, partition_count=1) for name in names))
    wishes = [MorePartitions(name=name, count=9_000) for name in names]
    steps = []
    with pytest.raises(ApiError) as refusal:
        create_partitions(
            metadata.state,
            wishes,
            metadata.rules,
            validate_only=True,
            step=lambda: steps.append(None),
        )
    assert refusal.value.code is ErrorCode.POLICY_VIOLATION
    assert len(steps) < 10_000
