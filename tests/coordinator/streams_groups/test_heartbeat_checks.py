"""The field checks of a heartbeat of a streams group."""

from typing import Any

import pytest

from odradek.coordinator.streams_groups.heartbeat_checks import MAX_SUBTOPOLOGIES, check_heartbeat
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatTaskIds,
)
from tests.support.streams_members import internal, subtopology, topology

TASKS = [StreamsGroupHeartbeatTaskIds(subtopology_id="0", partitions=[0])]
KINDS = ("active_tasks", "standby_tasks", "warmup_tasks")
NO_TASKS: dict[str, Any] = {kind: [] for kind in KINDS}
JOIN = {
    "member_epoch": 0,
    "rebalance_timeout_ms": 1,
    "topology": topology(subtopology("0", "a")),
    **NO_TASKS,
}


def request(**words: Any) -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest(
        **{
            "group_id": "g",
            "member_id": "m",
            "member_epoch": 1,
            "endpoint_information_epoch": 0,
            **words,
        }
    )


def refusal(**words: Any) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        check_heartbeat(request(**words))
    assert caught.value.message
    return caught.value.code


@pytest.mark.parametrize(
    "words",
    [
        {},
        JOIN,
        {"member_epoch": -1},
        {"member_epoch": -2, "instance_id": "i"},
        NO_TASKS,
        {**NO_TASKS, "active_tasks": TASKS},
        {"rack_id": "r"},
        {"instance_id": "\u00a0"},  # not blank to Java
    ],
)
def test_a_complete_heartbeat_passes(words: dict[str, Any]) -> None:
    check_heartbeat(request(**words))


@pytest.mark.parametrize("blank", ["", " \t\x00"])
@pytest.mark.parametrize("field", ["group_id", "member_id", "instance_id", "rack_id"])
def test_a_blank_name_is_refused(field: str, blank: str) -> None:
    assert refusal(**{field: blank}) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "words", [{"member_epoch": -2}, {"member_epoch": -3}, {"member_epoch": -3, "instance_id": "i"}]
)
def test_an_epoch_that_no_such_member_has_is_refused(words: dict[str, Any]) -> None:
    assert refusal(**words) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_are_reported_of_all_kinds_or_of_none(kind: str) -> None:
    assert refusal(**{kind: []}) is ErrorCode.INVALID_REQUEST
    assert refusal(**{**NO_TASKS, kind: None}) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "words",
    [
        {"rebalance_timeout_ms": -1},
        {"topology": None},
        *({kind: None} for kind in KINDS),
        *({kind: TASKS} for kind in KINDS),
    ],
)
def test_a_member_joins_with_a_timeout_a_topology_and_no_tasks(words: dict[str, Any]) -> None:
    assert refusal(**{**JOIN, **words}) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("epoch", [1, -1])
def test_only_a_joining_member_sends_a_topology(epoch: int) -> None:
    words = {"member_epoch": epoch, "topology": JOIN["topology"]}
    assert refusal(**words) is ErrorCode.INVALID_REQUEST


def test_source_topics_by_pattern_are_refused() -> None:
    by_pattern = subtopology("0", "a")
    by_pattern.source_topic_regex.append("a.*")
    topologies = topology(subtopology("1", "b"), by_pattern)
    assert refusal(**{**JOIN, "topology": topologies}) is ErrorCode.INVALID_REQUEST


def test_changelogs_leave_their_partitions_to_the_coordinator() -> None:
    sized = topology(subtopology("0", "a", changelogs=[internal("log"), internal("sized", 1)]))
    assert refusal(**{**JOIN, "topology": sized}) is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_a_topology_has_at_most_so_many_subtopologies() -> None:
    most = [subtopology(str(number), "a") for number in range(MAX_SUBTOPOLOGIES)]
    check_heartbeat(request(**{**JOIN, "topology": topology(*most)}))
    larger = topology(*most, subtopology("one more", "a"))
    assert refusal(**{**JOIN, "topology": larger}) is ErrorCode.STREAMS_INVALID_TOPOLOGY
