"""A topology and the cluster's topics: how large internal topics are, and what is wrong."""

import random
from collections.abc import Mapping, Sequence

import pytest

from odradek.coordinator.java.java_hash import hash_map_order
from odradek.coordinator.streams_groups.configuration import (
    MAX_TASKS,
    ConfiguredTopology,
    configure,
)
from odradek.coordinator.streams_groups.status import StatusCode
from odradek.coordinator.streams_groups.topology import Topology, topology_value
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatSubtopology
from tests.support.streams_members import internal, subtopology, topology


def configured(
    topics: Mapping[str, int], *subtopologies: StreamsGroupHeartbeatSubtopology
) -> ConfiguredTopology:
    return configure(Topology(topology_value(topology(*subtopologies))), topics.get)


def missing(found: ConfiguredTopology) -> dict[str, int]:
    return {name: topic.partition_count for name, topic in found.missing.items()}


def problem(found: ConfiguredTopology) -> StatusCode | None:
    return None if found.problem is None else found.problem.code


def test_internal_topics_are_as_large_as_what_their_writer_reads() -> None:
    found = configured(
        {"a": 2, "b": 5},
        subtopology("0", "a", "b", writes=["r1"]),
        subtopology("1", reads=[internal("r1")], writes=["r2"]),
        subtopology("2", reads=[internal("r2")], changelogs=[internal("log")]),
    )
    assert missing(found) == {"r1": 5, "r2": 5, "log": 5}
    assert problem(found) is StatusCode.MISSING_INTERNAL_TOPICS
    assert found.subtopologies is not None
    assert [one.task_count for one in found.subtopologies.values()] == [5, 5, 5]


def test_repartition_topics_are_decided_in_any_order() -> None:
    found = configured(
        {"a": 3},
        subtopology("0", reads=[internal("r2")]),
        subtopology("1", reads=[internal("r1")], writes=["r2"]),
        subtopology("2", "a", writes=["r1"]),
    )
    assert missing(found) == {"r1": 3, "r2": 3}


def sizes_by_passes(
    topics: Mapping[str, int], subtopologies: Sequence[StreamsGroupHeartbeatSubtopology]
) -> dict[str, int]:
    """The sizes of repartition topics as Kafka finds them, by passes over all sinks.

    What a sink gets depends on what is known when it is passed.
    """
    by_id = {one.subtopology_id: one for one in subtopologies}
    known: dict[str, int] = {}
    in_order = map(by_id.__getitem__, hash_map_order(by_id))
    left = [(one, sink) for one in in_order for sink in one.repartition_sink_topics]
    while left:
        undecided = []
        for one, sink in left:
            reads = [topic.name for topic in one.repartition_source_topics]
            sizes = [known[name] for name in reads if name in known]
            sizes += [topics[name] for name in one.source_topics]
            if sink not in known and sizes:
                known[sink] = max(sizes)
            elif sink not in known:
                undecided.append((one, sink))
        left = undecided
    return known


def test_repartition_topics_are_as_large_as_by_kafkas_passes() -> None:
    choose = random.Random(36)
    names = [f"r{number}" for number in range(5)]
    topics = {"a": 1, "b": 2, "c": 3}
    for _ in range(300):
        subtopologies = [
            subtopology(
                str(number),
                *choose.sample(list(topics), choose.choice((0, 0, 0, 1, 2))),
                reads=list(map(internal, choose.sample(names, choose.randint(1, 2)))),
                writes=choose.sample(names, choose.randint(0, 3)),
            )
            for number in range(5)
        ]
        subtopologies.append(subtopology("last", "a", writes=names))  # all of them have a writer
        subtopologies.insert(0, subtopology("first", reads=list(map(internal, names))))
        choose.shuffle(subtopologies)
        expected = sizes_by_passes(topics, subtopologies)
        assert missing(configured(topics, *subtopologies)) == expected


def test_a_subtopology_is_decided_after_those_that_precede_it_in_a_hash_map() -> None:
    special = {
        "2": subtopology("2", "a", writes=["r"]),
        "10": subtopology("10", "b", reads=[internal("r")], writes=["s"], joined=[([0], [0])]),
        "11": subtopology("11", reads=[internal("s")]),
    }
    ids = sorted(map(str, range(12)))  # "10" before "2"; a HashMap has them the other way round
    subtopologies = [special.get(one) or subtopology(one, "b") for one in ids]
    assert missing(configured({"a": 8, "b": 2}, *subtopologies)) == {"r": 2, "s": 8}


def test_of_two_groups_that_join_a_topic_the_last_in_a_hash_map_decides() -> None:
    joins = [
        subtopology(name, source, reads=[internal("r")], joined=[([0], [0])])
        for name, source in (("10", "b"), ("2", "a"))
    ]
    found = configured({"a": 8, "b": 2}, subtopology("0", "a", writes=["r"]), *joins)
    assert missing(found) == {"r": 2}


def test_a_topology_with_too_many_tasks_is_refused() -> None:
    many = [subtopology(str(number), "a") for number in range(MAX_TASKS // 1000)]
    assert configured({"a": 1000}, *many).is_ready
    with pytest.raises(ApiError, match="20001 tasks") as caught:
        configured({"a": 1000, "b": 1}, *many, subtopology("one more", "b"))
    assert caught.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_an_existing_topology_is_ready() -> None:
    found = configured(
        {"a": 2, "r": 4, "log": 4},
        subtopology("0", "a", writes=["r"]),
        subtopology("1", reads=[internal("r", 4)], changelogs=[internal("log")]),
    )
    assert found.is_ready
    assert not found.missing


@pytest.mark.parametrize(
    ("topics", "subtopologies"),
    [
        ({"a": 2, "b": 3}, [subtopology("0", "a", "b", joined=[([0, 1], [])])]),
        ({"a": 2, "log": 3}, [subtopology("0", "a", changelogs=[internal("log")])]),
        (
            {"a": 2, "b": 3},
            [
                subtopology("0", "a", writes=["r"]),
                subtopology("1", "b", reads=[internal("r", 2)], joined=[([0], [0])]),
            ],
        ),
        (
            {"a": 2},
            [
                subtopology("0", "a", writes=["r", "s"]),
                subtopology("1", reads=[internal("r", 2), internal("s", 3)], joined=[([], [0, 1])]),
            ],
        ),
    ],
    ids=["sources differ", "changelog differs", "fixed differs", "two fixed differ"],
)
def test_topics_of_wrong_sizes_are_named(
    topics: Mapping[str, int], subtopologies: list[StreamsGroupHeartbeatSubtopology]
) -> None:
    found = configured(topics, *subtopologies)
    assert problem(found) is StatusCode.INCORRECTLY_PARTITIONED_TOPICS
    assert found.subtopologies is None


def test_joined_repartition_topics_follow_the_source_topic_or_the_largest() -> None:
    sides = [
        subtopology("0", "a", writes=["r"]),
        subtopology("1", "b", writes=["s"]),
    ]
    largest = subtopology("2", reads=[internal("r"), internal("s")], joined=[([], [0, 1])])
    assert missing(configured({"a": 2, "b": 3}, *sides, largest)) == {"r": 3, "s": 3}
    follows = subtopology("2", "c", reads=[internal("r"), internal("s")], joined=[([0], [0, 1])])
    found = configured({"a": 2, "b": 3, "c": 4}, *sides, follows)
    assert missing(found) == {"r": 4, "s": 4}


def test_many_missing_topics_are_counted() -> None:
    found = configured({}, subtopology("0", *"edcba"))
    assert problem(found) is StatusCode.MISSING_SOURCE_TOPICS
    assert found.problem is not None
    assert "a, b, c and 2 additional topics" in found.problem.detail


@pytest.mark.parametrize(
    ("code", "subtopologies"),
    [
        (ErrorCode.STREAMS_INVALID_TOPOLOGY, [subtopology("0")]),
        (
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            [
                subtopology("0", reads=[internal("r")], writes=["s"]),
                subtopology("1", reads=[internal("s")], writes=["r"]),
            ],
        ),
        (ErrorCode.STREAMS_INVALID_TOPOLOGY, [subtopology("0", "a", reads=[internal("r")])]),
        (ErrorCode.UNKNOWN_SERVER_ERROR, [subtopology("0", "a"), subtopology("0", "a")]),
        (ErrorCode.UNKNOWN_SERVER_ERROR, [subtopology("0", "a", joined=[([-1], [])])]),
    ],
    ids=["no sources", "a loop", "never written", "twice", "a negative index"],
)
def test_topologies_that_make_no_sense_are_refused(
    code: ErrorCode, subtopologies: list[StreamsGroupHeartbeatSubtopology]
) -> None:
    with pytest.raises(ApiError) as refusal:
        configured({"a": 1}, *subtopologies)
    assert refusal.value.code is code
