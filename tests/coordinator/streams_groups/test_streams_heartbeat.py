"""Heartbeats of streams groups: join, topology, tasks, epochs, leaving, deadlines."""

from typing import Any

import pytest

from odradek.coordinator.streams_groups.description import described
from odradek.coordinator.streams_groups.status import StatusCode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatEndpoint,
    StreamsGroupHeartbeatTaskOffset,
    StreamsGroupHeartbeatTopology,
)
from tests.support.streams_members import (
    PLAIN,
    WORD_COUNT,
    StreamsMembers,
    statuses,
    subtopology,
    tasks_of,
    topology,
)

SESSION_MS = 45_000


@pytest.fixture
def members() -> StreamsMembers:
    made = StreamsMembers()
    made.topic("lines", 4)
    return made


# -- tasks -----------------------------------------------------------------------------------------


def test_the_only_member_gets_all_tasks(members: StreamsMembers) -> None:
    joined = members.join("a")
    assert joined.member_epoch == 2
    assert tasks_of(joined.active_tasks) == {"0": [0, 1, 2, 3]}
    assert statuses(joined) == []
    assert members.group.state_name == "Stable"


def test_a_second_process_gets_tasks_when_the_first_has_given_them_up(
    members: StreamsMembers,
) -> None:
    members.join("a")
    joined = members.join("b")
    assert tasks_of(joined.active_tasks) == {}
    kept = tasks_of(members.beat("a").active_tasks)
    assert kept is not None
    assert len(kept["0"]) == 2
    assert tasks_of(members.beat("b").active_tasks) is None
    members.beat("a", owned=kept)
    got = tasks_of(members.beat("b").active_tasks)
    assert got is not None
    assert sorted(kept["0"] + got["0"]) == [0, 1, 2, 3]
    members.settle("a", "b")


def test_a_member_that_leaves_frees_its_tasks(members: StreamsMembers) -> None:
    for member_id in ("a", "b"):
        members.join(member_id)
    members.settle("a", "b")
    left = members.leave("a")
    assert (left.member_epoch, left.status) == (-1, [])
    members.settle("b")
    assert members.owned("b") == {"0": [0, 1, 2, 3]}


def test_a_silent_member_is_removed_when_its_session_ends(members: StreamsMembers) -> None:
    members.join("a")
    members.advance(SESSION_MS - 1)
    assert members.group.members
    members.advance(1)
    assert not members.group.members
    assert members.group.state_name == "Empty"


def test_a_member_that_keeps_revoked_tasks_is_removed(members: StreamsMembers) -> None:
    members.join("a")
    members.join("b")
    members.beat("a")
    for _ in range(3):
        members.advance(20_000)
        members.beat("b")
        if "a" in members.group.members:
            members.beat("a", owned={"0": [0, 1, 2, 3]})
    assert list(members.group.members) == ["b"]


def test_standby_tasks_are_in_other_processes() -> None:
    members = StreamsMembers(overrides={"streams.num.standby.replicas": "1"})
    members.topic("lines", 2)
    members.topic("words", 2)
    members.topic("counts", 2)
    for member_id in ("a", "b"):
        members.join(member_id, WORD_COUNT)
    members.settle("a", "b")
    for one, other in (("a", "b"), ("b", "a")):
        active = members.owned(one).get("1", [])
        standby = members.group.member(other).assigned.standby.get("1", frozenset())
        assert sorted(standby) == active


def test_changed_settings_of_the_assignor_rebalance_the_group(members: StreamsMembers) -> None:
    members.join("a")
    epoch = members.group.epoch
    members.overrides["streams.num.standby.replicas"] = "1"
    members.beat("a")
    assert members.group.epoch == epoch + 1


# -- the topology and its topics -------------------------------------------------------------------


def test_without_source_topics_there_are_no_tasks() -> None:
    members = StreamsMembers()
    joined = members.join("a")
    assert statuses(joined) == [StatusCode.MISSING_SOURCE_TOPICS]
    assert tasks_of(joined.active_tasks) == {}
    assert members.group.state_name == "NotReady"
    members.topic("lines", 2)
    assert tasks_of(members.beat("a").active_tasks) == {"0": [0, 1]}


@pytest.mark.parametrize(
    "wrong",
    [
        topology(subtopology("0", "lines"), epoch=-1),
        topology(subtopology("0", "missing", joined=[([7], [])])),
    ],
    ids=["a negative epoch", "an index out of range, of a topic that does not exist"],
)
def test_a_wrong_topology_is_refused_and_not_kept(
    members: StreamsMembers, wrong: StreamsGroupHeartbeatTopology
) -> None:
    assert members.join("a", wrong).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert statuses(members.join("a", PLAIN)) == []


def test_missing_internal_topics_are_named_and_used_when_they_exist(
    members: StreamsMembers,
) -> None:
    joined = members.join("a", WORD_COUNT)
    assert statuses(joined) == [StatusCode.MISSING_INTERNAL_TOPICS]
    again = members.send("a", joined.member_epoch)
    counts = {name: one.partition_count for name, one in again.missing_topics.items()}
    assert counts == {"words": 4, "counts": 4}
    members.create_missing(again)
    given = members.beat("a")
    assert statuses(given) == []
    assert tasks_of(given.active_tasks) == {"0": [0, 1, 2, 3], "1": [0, 1, 2, 3]}


def test_an_internal_topic_of_another_size_stops_the_group(members: StreamsMembers) -> None:
    members.topic("words", 4)
    members.topic("counts", 3)
    joined = members.join("a", WORD_COUNT)
    assert statuses(joined) == [StatusCode.INCORRECTLY_PARTITIONED_TOPICS]


def test_a_source_topic_that_grows_brings_more_tasks(members: StreamsMembers) -> None:
    members.join("a")
    members.grow("lines", 6)
    assert tasks_of(members.beat("a").active_tasks) == {"0": [0, 1, 2, 3, 4, 5]}


def test_a_topology_cannot_change(members: StreamsMembers) -> None:
    members.join("a")
    other = topology(subtopology("0", "lines"), subtopology("1", "lines"))
    assert members.join("b", other).error_code == ErrorCode.INVALID_REQUEST
    newer = topology(subtopology("0", "lines"), epoch=1)
    assert members.join("b", newer).error_code == ErrorCode.INVALID_REQUEST


def test_a_member_with_an_older_topology_is_told_so() -> None:
    members = StreamsMembers()
    members.topic("lines", 1)
    members.join("a", topology(subtopology("0", "lines"), epoch=1))
    assert statuses(members.join("b", PLAIN)) == [StatusCode.STALE_TOPOLOGY]


# -- epochs ----------------------------------------------------------------------------------------


def test_only_the_current_epoch_and_the_one_before_are_accepted(members: StreamsMembers) -> None:
    members.join("a")
    members.overrides["streams.num.standby.replicas"] = "1"
    epoch = members.beat("a").member_epoch
    owned = members.owned("a")
    assert members.beat("a", epoch - 1, owned=owned).error_code == ErrorCode.NONE
    assert members.beat("a", epoch - 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert members.beat("a", epoch + 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert members.beat("a", owned={"0": [7]}).error_code == ErrorCode.INVALID_REQUEST
    assert members.beat("a", owned={"9": [0]}).error_code == ErrorCode.INVALID_REQUEST


def test_unknown_members_and_groups_are_refused(members: StreamsMembers) -> None:
    assert members.send("a", 1).response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert members.leave("a").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    members.join("a")
    assert members.beat("b", 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert members.leave("b").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_full_group_takes_no_more_members() -> None:
    members = StreamsMembers(max_size=1)
    members.topic("lines", 1)
    members.join("a")
    assert members.join("b").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


# -- delays ----------------------------------------------------------------------------------------


def test_the_first_tasks_wait_for_the_initial_rebalance_delay() -> None:
    members = StreamsMembers(initial_rebalance_delay_ms=3_000)
    members.topic("lines", 2)
    first = members.join("a")
    assert statuses(first) == [StatusCode.ASSIGNMENT_DELAYED]
    members.join("b")
    assert statuses(members.beat("a")) == [StatusCode.ASSIGNMENT_DELAYED]
    members.advance(3_000)
    assert members.group.state_name == "Reconciling"
    owned = [tasks_of(members.beat(member_id).active_tasks) for member_id in ("a", "b")]
    assert sorted(len(one["0"]) for one in owned if one) == [1, 1]


def test_later_tasks_wait_for_the_assignment_interval() -> None:
    members = StreamsMembers(assignment_interval_ms=1_000)
    members.topic("lines", 2)
    members.join("a")
    assert statuses(members.join("b")) == [StatusCode.ASSIGNMENT_DELAYED]
    members.advance(1_000)
    assert statuses(members.beat("b")) == []


# -- what members are told of each other -----------------------------------------------------------


def test_a_shutdown_is_told_to_all_members_until_the_group_is_empty(
    members: StreamsMembers,
) -> None:
    for member_id in ("a", "b"):
        members.join(member_id)
    assert statuses(members.beat("a", shutdown_application=True)) == [
        StatusCode.SHUTDOWN_APPLICATION
    ]
    members.leave("a")
    assert statuses(members.beat("b")) == [StatusCode.SHUTDOWN_APPLICATION]
    members.leave("b")
    assert statuses(members.join("c")) == []


def test_endpoints_are_told_to_members_that_do_not_know_the_newest(
    members: StreamsMembers,
) -> None:
    address = StreamsGroupHeartbeatEndpoint(host="host", port=1)
    members.join("a", user_endpoint=address)
    told = members.beat("a", owned=members.owned("a"))
    assert told.endpoint_information_epoch == 0
    members.join("b", user_endpoint=address)
    members.settle("a", "b")
    told = members.beat("a")
    [one, other] = told.partitions_by_user_endpoint or []
    partitions = [
        partition
        for found in (one, other)
        for topic in found.active_partitions
        for partition in topic.partitions
    ]
    assert sorted(partitions) == [0, 1, 2, 3]
    again = members.beat("a", endpoint_epoch=told.endpoint_information_epoch)
    assert again.partitions_by_user_endpoint is None


def refusal(members: StreamsMembers, member_id: str, epoch: int, **words: Any) -> ErrorCode:
    return ErrorCode(members.send(member_id, epoch, **words).response.error_code)


# -- static members --------------------------------------------------------------------------------


def test_a_static_member_comes_back_without_a_rebalance(members: StreamsMembers) -> None:
    members.join("a", process="p", instance_id="i")
    members.join("b")
    members.settle("a", "b")
    owned, epoch = members.owned("a"), members.group.epoch
    assert members.send("a", -2, instance_id="i").response.member_epoch == -2
    back = members.join("c", process="p", instance_id="i")
    assert (tasks_of(back.active_tasks), back.member_epoch) == (owned, epoch)
    assert set(members.group.members) == {"b", "c"}
    assert members.group.epoch == epoch
    members.restart()
    assert members.group.static_member_ids == {"i": "c"}


def test_a_static_member_that_stays_away_is_removed(members: StreamsMembers) -> None:
    members.join("a", instance_id="i")
    members.send("a", -2, instance_id="i")
    members.advance(SESSION_MS - 1)
    assert list(members.group.members) == ["a"]
    members.advance(1)
    assert not members.group.members
    assert not members.group.static_member_ids


def test_an_instance_id_has_one_member(members: StreamsMembers) -> None:
    members.join("a", instance_id="i")
    joins = {"topology": PLAIN, "rebalance_timeout_ms": 1, "instance_id": "i", "owned": {}}
    assert refusal(members, "b", 0, **joins) is ErrorCode.UNRELEASED_INSTANCE_ID
    assert refusal(members, "b", 2, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert refusal(members, "b", -1, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert refusal(members, "a", 2, instance_id="j") is ErrorCode.UNKNOWN_MEMBER_ID
    assert refusal(members, "a", -2) is ErrorCode.INVALID_REQUEST


def test_a_static_member_may_come_back_to_a_full_group() -> None:
    members = StreamsMembers(max_size=1)
    members.topic("lines", 1)
    members.join("a", process="p", instance_id="i")
    members.send("a", -2, instance_id="i")
    assert tasks_of(members.join("b", process="p", instance_id="i").active_tasks) == {"0": [0]}


# -- reports and settings --------------------------------------------------------------------------


def test_offsets_of_tasks_are_described_until_they_are_reported_again(
    members: StreamsMembers,
) -> None:
    def offset(far: int) -> StreamsGroupHeartbeatTaskOffset:
        return StreamsGroupHeartbeatTaskOffset(subtopology_id="0", partition=1, offset=far)

    def told() -> list[tuple[str, int, int]]:
        [one] = described(members.group, 0, wants_readable_topology=False).members
        assert [found.offset for found in one.task_end_offsets] == [9]
        return [(found.subtopology_id, found.partition, found.offset) for found in one.task_offsets]

    members.join("a")
    members.beat("a", task_offsets=[offset(5)], task_end_offsets=[offset(9)])
    members.beat("a")
    assert told() == [("0", 1, 5)]
    members.beat("a", task_offsets=[offset(6)])
    assert told() == [("0", 1, 6)]
    twice = [offset(1), offset(2)]
    assert refusal(members, "a", 2, task_offsets=twice) is ErrorCode.INVALID_REQUEST


def test_members_are_told_how_far_and_how_often_tasks_are_to_be_reported() -> None:
    members = StreamsMembers(
        overrides={
            "streams.acceptable.recovery.lag": "7",
            "streams.task.offset.interval.ms": "1",  # below the broker's bound
        }
    )
    members.topic("lines", 1)
    told = members.join("a")
    assert (told.acceptable_recovery_lag, told.task_offset_interval_ms) == (7, 15_000)


def test_a_member_without_the_tags_of_the_assignor_is_told_so() -> None:
    members = StreamsMembers(rack_aware_assignment_tags=("zone", "rack"))
    members.topic("lines", 1)
    assert statuses(members.join("a")) == []
    members.api_version = 1
    [missing] = members.beat("a").status or []
    assert missing.status_code == StatusCode.MISSING_CLIENT_TAGS
    assert "[zone, rack]" in missing.status_detail


# -- restarts --------------------------------------------------------------------------------------


def test_a_group_goes_on_after_a_restart(members: StreamsMembers) -> None:
    for member_id in ("a", "b"):
        members.join(member_id)
    members.settle("a", "b")
    owned = {member_id: members.owned(member_id) for member_id in ("a", "b")}
    epoch = members.group.epoch
    members.restart()
    members.settle("a", "b")
    assert {member_id: members.owned(member_id) for member_id in ("a", "b")} == owned
    assert members.group.epoch == epoch
    members.advance(SESSION_MS)
    assert members.group.state_name == "Empty"
