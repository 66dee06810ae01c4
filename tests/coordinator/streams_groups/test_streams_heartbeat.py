"""Heartbeats of streams groups: join, topology, tasks, epochs, leaving, deadlines."""

import pytest

from odradek.coordinator.streams_groups.status import StatusCode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatEndpoint
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
