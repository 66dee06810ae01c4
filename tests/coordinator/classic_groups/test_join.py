"""Joins: ids, protocols, limits, who leads, how long a group waits, and static members."""

import pytest

from odradek.coordinator.classic_groups.group import ClassicState
from odradek.coordinator.classic_groups.protocols import elect_protocol
from odradek.coordinator.groups.member_requests import MAX_PROTOCOLS
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.both_lives import assert_log_agrees
from tests.support.groups import (
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    Groups,
    Waiting,
    subscription,
)

NEW_MEMBER_MS = 5 * 60_000


# -- ids -----------------------------------------------------------------------------------------


def test_a_dynamic_member_is_named_after_its_client_and_must_come_back_with_the_name() -> None:
    groups = Groups()
    asked = groups.send_join(client_id="app")
    assert asked.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert asked.member_id == "app-uuid1"
    assert groups.join(asked.member_id).member_id == "app-uuid1"


def test_before_v4_a_dynamic_member_is_admitted_without_being_asked_back() -> None:
    assert Groups().send_join(version=3).member_id == "client-uuid1"


def test_a_static_member_is_named_after_its_instance() -> None:
    assert Groups().join(instance="i1").member_id == "i1-uuid1"


def test_a_member_that_does_not_come_back_with_its_id_in_time_is_forgotten() -> None:
    groups = Groups()
    asked = groups.send_join()
    groups.advance(SESSION_MS)
    refused = groups.send_join(asked.member_id)
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert refused.member_id == asked.member_id


def test_a_rebalance_waits_for_members_that_were_promised_an_id() -> None:
    groups = Groups(initial_rebalance_delay_ms=0)
    (leader,) = groups.stable_group(1)
    asked = groups.send_join()
    waiting = groups.send_join(leader)
    assert not waiting.done()
    groups.advance(SESSION_MS)
    assert waiting.response.generation_id == 2
    assert groups.send_join(asked.member_id).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_id_that_was_promised_to_a_dynamic_member_is_not_for_a_static_one() -> None:
    groups = Groups()
    asked = groups.send_join()
    refused = groups.send_join(asked.member_id, instance="i1")
    assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


# -- protocols -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preferences", "elected"),
    [
        ([["range", "sticky"]], "range"),
        ([["range", "sticky"], ["sticky", "range"], ["sticky", "range"]], "sticky"),
        ([["range", "sticky"], ["sticky"]], "sticky"),
        ([["a", "b", "c"], ["c", "b"], ["b", "c", "a"]], "b"),
        # As many votes for the one as for the other: whoever votes first, Kafka elects these.
        ([["range", "sticky"], ["sticky", "range"]], "sticky"),
        ([["sticky", "range"], ["range", "sticky"]], "sticky"),
        ([["b", "a"], ["a", "b"]], "a"),
    ],
)
def test_members_vote_for_the_first_of_their_protocols_that_all_support(
    preferences: list[list[str]], elected: str
) -> None:
    assert elect_protocol(preferences) == elected


def test_a_join_with_more_protocols_than_are_served_is_refused() -> None:
    groups = Groups()
    names = [f"assignor-{number}" for number in range(MAX_PROTOCOLS + 1)]
    refused = groups.join(protocols=dict.fromkeys(names, b""))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    joined = groups.join(protocols=dict.fromkeys(names[:MAX_PROTOCOLS], b""))
    assert joined.error_code == ErrorCode.NONE


def test_a_member_without_a_protocol_type_or_without_protocols_cannot_join() -> None:
    for words in ({"protocol_type": ""}, {"protocols": {}}):
        refused = Groups().send_join(**words)
        assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_new_member_must_share_a_protocol_with_all_others() -> None:
    groups = Groups()
    groups.stable_group(1, protocols={"range": b"1", "sticky": b"1"})
    follower, _ = groups.parked_join(protocols={"sticky": b"2"})
    refused = groups.send_join(protocols={"range": b"3"})
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    leader = groups.group().leader_id
    joined = groups.send_join(leader, protocols={"range": b"1", "sticky": b"1"})
    assert joined.protocol_name == "sticky"
    assert {m.member_id: m.metadata for m in joined.members} == {leader: b"1", follower: b"2"}


def test_when_a_member_leaves_its_protocols_no_longer_count() -> None:
    groups = Groups()
    leader, follower = groups.stable_group(2, protocols={"range": b"", "sticky": b""})
    groups.leave(follower)
    groups.join(leader, protocols={"sticky": b""})
    refused = groups.send_join(protocols={"range": b""})
    assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


# -- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001, -1])
def test_a_session_timeout_outside_the_range_is_refused(session_ms: int) -> None:
    refused = Groups().send_join("m", session_ms=session_ms)
    assert refused.error_code == ErrorCode.INVALID_SESSION_TIMEOUT
    assert refused.member_id == "m"


def test_a_group_without_a_name_is_refused() -> None:
    refused = Groups().send_join("m", group_id="")
    assert refused.error_code == ErrorCode.INVALID_GROUP_ID


def test_a_full_group_takes_nobody_else_but_its_members_may_come_back() -> None:
    groups = Groups(max_size=2)
    leader, follower = groups.stable_group(2)
    refused = groups.send_join()
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.member_id == ""
    assert isinstance(groups.send_join(leader), Waiting)
    assert groups.join(follower).generation_id == 3


def test_a_group_over_a_lowered_limit_rebalances_at_start_and_the_last_to_come_back_is_out() -> (
    None
):
    members = (groups := Groups()).stable_group(3)
    smaller = groups.restarted(max_size=2)
    assert smaller.group().state is ClassicState.PREPARING_REBALANCE
    parked = [smaller.send_join(member_id) for member_id in members[:2]]
    refused = smaller.send_join(members[2])
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert members[2] not in smaller.group().members
    smaller.advance(REBALANCE_MS)
    assert [waiting.response.generation_id for waiting in parked] == [3, 3]


# -- how long a group waits ----------------------------------------------------------------------


def test_a_new_group_waits_for_company_before_its_first_generation() -> None:
    groups = Groups(initial_rebalance_delay_ms=3_000)
    _, first = groups.parked_join()
    groups.advance(2_999)
    assert not first.done()
    groups.advance(1)
    assert first.response.generation_id == 1


def test_each_newcomer_extends_the_first_wait_but_never_beyond_the_rebalance_timeout() -> None:
    groups = Groups(initial_rebalance_delay_ms=3_000)
    _, first = groups.parked_join(rebalance_ms=8_000)
    for _ in range(3):
        groups.advance(2_500)
        groups.parked_join(rebalance_ms=8_000)
    # 3 s, 3 s more, and then the 2 s that are left of 8.
    groups.advance(499)
    assert not first.done()
    groups.advance(1)
    assert first.response.generation_id == 1
    assert len(first.response.members) == 4


def test_without_newcomers_the_first_wait_is_not_extended() -> None:
    groups = Groups(initial_rebalance_delay_ms=3_000)
    _, first = groups.parked_join()
    groups.advance(1_000)
    groups.parked_join()
    groups.advance(4_999)
    assert not first.done()
    groups.advance(1)
    assert first.done()


def test_a_rebalance_ends_when_the_last_member_is_back() -> None:
    groups = Groups()
    leader, follower = groups.stable_group(2)
    new, waiting = groups.parked_join()
    groups.send_join(leader)
    assert not waiting.done()
    assert groups.join(follower).generation_id == 3
    assert waiting.response.generation_id == 3
    assert set(groups.group().members) == {leader, follower, new}


def test_members_that_are_not_back_by_the_rebalance_timeout_are_out() -> None:
    groups = Groups()
    leader, follower = groups.stable_group(2, rebalance_ms=8_000)
    _, waiting = groups.parked_join(rebalance_ms=8_000)
    groups.send_join(follower, rebalance_ms=8_000)
    groups.advance(7_999)
    assert not waiting.done()
    groups.heartbeat(leader)
    groups.advance(1)
    assert waiting.response.generation_id == 3
    assert waiting.response.leader == follower
    assert leader not in groups.group().members


def test_the_most_patient_member_decides_how_long_a_rebalance_may_take() -> None:
    groups = Groups()
    (leader,) = groups.stable_group(1, rebalance_ms=9_000)
    _, waiting = groups.parked_join(rebalance_ms=6_000)
    groups.advance(8_999)
    groups.heartbeat(leader)
    assert not waiting.done()
    groups.advance(1)
    assert waiting.done()


def test_a_newcomer_whose_rebalance_takes_too_long_is_sent_away() -> None:
    groups = Groups()
    (leader,) = groups.stable_group(1, rebalance_ms=10 * NEW_MEMBER_MS)
    _, waiting = groups.parked_join(rebalance_ms=10 * NEW_MEMBER_MS)
    for _ in range(NEW_MEMBER_MS // 5_000):
        assert not waiting.done()
        groups.heartbeat(leader)
        groups.advance(5_000)
    assert waiting.response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert waiting.response.member_id == ""


def test_a_member_that_waits_in_a_join_needs_no_heartbeats() -> None:
    groups = Groups()
    leader, follower = groups.stable_group(2)
    groups.parked_join()
    waiting = groups.send_join(leader)
    for _ in range(6):
        groups.advance(9_000)
        groups.heartbeat(follower)
    assert not waiting.done()
    groups.advance(REBALANCE_MS - 54_000)
    assert waiting.response.generation_id == 3


def test_a_silent_member_is_out_after_its_session_and_the_others_rebalance() -> None:
    groups = Groups()
    leader, follower = groups.stable_group(2)
    groups.advance(9_999)
    assert groups.heartbeat(leader) is ErrorCode.NONE
    groups.advance(1)
    assert groups.heartbeat(leader) is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.heartbeat(follower, 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.join(leader).generation_id == 3


def test_when_all_members_fall_silent_the_group_is_empty_at_the_next_generation() -> None:
    groups = Groups()
    groups.stable_group(2)
    groups.advance(SESSION_MS)
    assert groups.group().state is ClassicState.EMPTY
    assert groups.group().generation_id == 3
    assert groups.group().leader_id is None
    assert groups.restarted().group().generation_id == 3


def test_generations_go_on_when_an_empty_group_is_joined_again() -> None:
    groups = Groups()
    groups.leave(*groups.stable_group(1))
    assert groups.join().generation_id == 3


def test_a_new_group_whose_members_all_leave_becomes_empty_when_its_wait_is_over() -> None:
    groups = Groups(initial_rebalance_delay_ms=3_000)
    member_id, waiting = groups.parked_join()
    groups.leave(member_id)
    assert waiting.response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.group().state is ClassicState.PREPARING_REBALANCE
    groups.advance(3_000)
    assert groups.group().state is ClassicState.EMPTY


# -- static members ------------------------------------------------------------------------------


def static_group(groups: Groups, *, version: int = 9) -> tuple[str, str]:
    """A stable group of two static members, i1 leading."""
    first = groups.join(instance="i1", version=version).member_id
    second, _ = groups.parked_join(instance="i2", version=version)
    groups.send_join(first, instance="i1", version=version)
    groups.send_sync(second, instance="i2")
    groups.sync(first, assignments={first: b"1", second: b"2"}, instance="i1")
    return first, second


def test_a_static_member_that_restarts_gets_a_new_id_and_disturbs_nobody() -> None:
    groups = Groups()
    first, old = static_group(groups)
    back = groups.join(instance="i2")
    assert back.generation_id == 2
    assert back.member_id not in (first, old)
    assert (back.leader, back.skip_assignment, back.members) == (first, False, [])
    assert groups.group().state is ClassicState.STABLE
    assert groups.sync(back.member_id, instance="i2").assignment == b"2"


def test_the_old_id_of_a_static_member_is_fenced_everywhere() -> None:
    groups = Groups()
    _, old = static_group(groups)
    groups.join(instance="i2")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat(old, instance="i2") is fenced
    assert groups.sync(old, instance="i2").error_code == fenced
    assert groups.join(old, instance="i2").error_code == fenced
    with pytest.raises(ApiError) as caught:
        groups.commit(1, member_id=old, generation_id=2, instance="i2")
    assert caught.value.code is fenced
    assert groups.heartbeat(old) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_leader_that_restarts_is_told_to_skip_the_assignment() -> None:
    groups = Groups()
    old, second = static_group(groups)
    back = groups.join(instance="i1")
    assert back.leader == back.member_id != old
    assert back.skip_assignment
    assert {member.member_id for member in back.members} == {back.member_id, second}


def test_a_static_leader_of_an_old_version_is_told_that_its_old_id_leads() -> None:
    groups = Groups()
    old, _ = static_group(groups, version=8)
    back = groups.join(instance="i1", version=8)
    assert (back.leader, back.skip_assignment, back.members) == (old, False, [])
    assert groups.group().leader_id == back.member_id


def test_the_new_id_of_a_static_member_survives_a_restart() -> None:
    groups = Groups()
    static_group(groups)
    new_id = groups.join(instance="i2").member_id
    after = groups.restarted()
    assert after.group().roster.static_member_ids["i2"] == new_id
    assert after.sync(new_id, 2, instance="i2").assignment == b"2"


def test_the_timeouts_with_which_a_static_member_came_back_survive_a_restart() -> None:
    groups = Groups()
    static_group(groups)
    new_id = groups.join(instance="i2", session_ms=20_000, rebalance_ms=90_000).member_id
    for life in (groups, groups.restarted()):
        member = life.group().members[new_id]
        assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 90_000)


def test_a_static_member_whose_protocols_would_change_the_election_starts_a_rebalance() -> None:
    groups = Groups()
    both = {"range": b"", "sticky": b""}
    first = groups.join(instance="i1", protocols=both).member_id
    groups.sync(first, assignments={first: b"1"}, instance="i1")
    back = groups.join(instance="i1", protocols={"sticky": b"", "range": b""})
    assert back.protocol_name == "sticky"
    assert back.generation_id == 2


def test_a_static_member_that_restarts_before_the_assignment_starts_a_rebalance() -> None:
    groups = Groups()
    first = groups.join(instance="i1").member_id
    second, _ = groups.parked_join(instance="i2")
    groups.send_join(first, instance="i1")
    parked_sync = groups.send_sync(second, instance="i2")
    back = groups.send_join(instance="i2")
    assert parked_sync.response.error_code == ErrorCode.FENCED_INSTANCE_ID
    assert groups.group().state is ClassicState.PREPARING_REBALANCE
    joined = groups.join(first, instance="i1")
    assert joined.generation_id == 3
    assert back.response.generation_id == 3
    assert second not in groups.group().members


def test_a_static_member_that_restarts_while_its_join_is_parked_fences_the_parked_one() -> None:
    groups = Groups()
    static_group(groups)
    groups.parked_join(instance="i3")
    old = groups.send_join(groups.group().roster.static_member_ids["i2"], instance="i2")
    groups.send_join(instance="i2")
    assert old.response.error_code == ErrorCode.FENCED_INSTANCE_ID


def test_static_members_stay_when_a_rebalance_goes_on_without_them() -> None:
    groups = Groups()
    first, second = static_group(groups)
    groups.parked_join(instance="i3")
    waiting = groups.send_join(first, instance="i1")
    for _ in range(7):
        groups.heartbeat(second, instance="i2")
        groups.advance(REBALANCE_MS // 6 - 1_000)
    assert waiting.done()
    assert second in groups.group().members


def test_a_rebalance_that_no_static_member_joined_waits_for_their_sessions() -> None:
    groups = Groups()
    groups.join(instance="i1", rebalance_ms=7_000, session_ms=20_000)
    first = groups.group().roster.static_member_ids["i1"]
    groups.sync(first, assignments={}, instance="i1")
    newcomer, _ = groups.parked_join(rebalance_ms=7_000)
    groups.leave(newcomer)
    groups.advance(7_000)
    assert groups.group().state is ClassicState.PREPARING_REBALANCE
    assert groups.group().leader_id == first
    groups.advance(13_000)
    assert groups.group().state is ClassicState.EMPTY


def test_an_absent_static_member_without_a_rebalance_timeout_does_not_occupy_the_loop() -> None:
    groups = Groups()
    patient = groups.join(instance="patient").member_id
    absent, _ = groups.parked_join(instance="absent", rebalance_ms=0)
    groups.send_join(patient, instance="patient")
    groups.send_sync(absent, instance="absent")
    groups.sync(patient, assignments={}, instance="patient")
    groups.leave(patient)
    groups.advance(1)
    assert groups.group().state is ClassicState.PREPARING_REBALANCE
    assert [alarm.at_ms for alarm in groups.loop.alarms] == [groups.loop.now_ms + 1]
    groups.advance(SESSION_MS)
    assert groups.group().state is ClassicState.EMPTY


def test_a_failed_write_leaves_the_static_member_under_its_old_id() -> None:
    groups = Groups()
    leader, old = static_group(groups)
    groups.advance(SESSION_MS - 1)
    groups.heartbeat(leader, instance="i1")
    groups.logs[0].fail_next = ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    refused = groups.join(instance="i2")
    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert refused.member_id == ""
    groups.advance(SESSION_MS - 1)
    assert groups.heartbeat(old, instance="i2") is ErrorCode.NONE
    assert_log_agrees(groups)


def test_a_group_that_could_not_be_written_down_does_not_exist() -> None:
    groups = Groups()
    groups.logs[0].fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "")
    refused = groups.send_join()
    assert refused.error_code == ErrorCode.NOT_COORDINATOR
    assert GROUP not in groups.coordinator.shards.of(GROUP).state.groups
    assert groups.join().generation_id == 1


def test_a_group_whose_emptiness_could_not_be_written_is_empty_all_the_same() -> None:
    groups = Groups()
    (leader,) = groups.stable_group(1)
    groups.logs[0].fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "")
    assert groups.leave(leader).error_code == ErrorCode.NOT_COORDINATOR
    assert groups.group().state is ClassicState.EMPTY
    assert groups.group().generation_id == 2
    assert_log_agrees(groups)
    written = groups.group().journaled
    assert written is not None
    assert [member.member_id for member in written.members] == [leader]
    assert groups.join().generation_id == 3


def test_the_subscription_of_a_group_is_the_union_of_its_members() -> None:
    groups = Groups()
    groups.join(protocols={"range": subscription("a", "b")})
    groups.parked_join(protocols={"range": subscription("b", "c")})
    groups.send_join(groups.group().leader_id, protocols={"range": subscription("a", "b")})
    assert groups.group().subscriptions.topics == {"a", "b", "c"}
    unreadable = Groups()
    unreadable.join(protocols={"range": b"\x00"})
    assert unreadable.group().subscriptions.topics is None
    assert unreadable.group().is_subscribed_to("anything")
