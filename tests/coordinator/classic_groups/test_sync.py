"""The assignment, heartbeats and leaving."""

import asyncio

import pytest

from odradek.coordinator.classic_groups import sync
from odradek.coordinator.classic_groups.group import ClassicState
from odradek.coordinator.groups import classic_group_service
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity
from odradek.protocol.messages.sync_group import SyncGroupResponse
from tests.support.groups import GROUP, REBALANCE_MS, SESSION_MS, Groups


def completing_group(groups: Groups, members: int = 3) -> list[str]:
    """A group whose members have joined and now await the leader's assignment."""
    ids = [groups.join().member_id]
    ids += [groups.parked_join()[0] for _ in range(members - 1)]
    for member_id in ids:
        groups.send_join(member_id)
    assert groups.group().state is ClassicState.COMPLETING_REBALANCE
    return ids


def test_followers_wait_for_the_leader_and_each_gets_its_own_part() -> None:
    groups = Groups()
    leader, second, third = completing_group(groups)
    parked = [groups.send_sync(second), groups.send_sync(third)]
    assert not any(waiting.done() for waiting in parked)
    answer = groups.sync(leader, assignments={leader: b"L", second: b"S"})
    assert answer == SyncGroupResponse(
        protocol_type="consumer", protocol_name="range", assignment=b"L"
    )
    # Whom the leader forgot gets nothing to do.
    assert [waiting.response.assignment for waiting in parked] == [b"S", b""]
    assert groups.group().state is ClassicState.STABLE


def test_an_assignment_from_a_follower_counts_for_nothing() -> None:
    groups = Groups()
    leader, second, _ = completing_group(groups)
    parked = groups.send_sync(second, assignments={second: b"all"})
    groups.sync(leader, assignments={second: b"fair"})
    assert parked.response.assignment == b"fair"


def test_the_assignment_is_written_before_anybody_gets_it() -> None:
    groups = Groups()
    leader, second, third = completing_group(groups)
    parked = groups.send_sync(second)
    groups.logs[0].fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "")
    assert groups.sync(leader, assignments={}).error_code == ErrorCode.NOT_COORDINATOR
    assert parked.response.error_code == ErrorCode.NOT_COORDINATOR
    assert groups.group().state is ClassicState.PREPARING_REBALANCE
    for member_id in (leader, second):
        groups.send_join(member_id)
    assert groups.join(third).generation_id == 3


def test_nobody_waits_for_an_assignment_that_failed_by_a_bug(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    groups = Groups()
    leader, second, _ = completing_group(groups)
    parked = groups.send_sync(second)
    with monkeypatch.context() as changed:
        changed.setattr(sync, "generation_value", lambda *_: 1 // 0)
        answer = groups.sync(leader, assignments={})
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert parked.response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.group().state is ClassicState.PREPARING_REBALANCE
    assert "ZeroDivisionError" in caplog.text


def test_an_assignment_that_is_too_large_for_the_log_is_a_server_error() -> None:
    groups = Groups()
    leader = groups.join().member_id
    answer = groups.sync(leader, assignments={leader: bytes(2**20)})
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_member_that_cannot_be_written_down_is_a_server_error_and_the_group_goes_on() -> None:
    groups = Groups()
    leader = groups.join().member_id
    strange, _ = groups.parked_join(client_id="\N{REPLACEMENT CHARACTER}" * 20_000)
    groups.send_join(leader)
    parked = groups.send_sync(strange)
    assert groups.sync(leader).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert parked.response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    groups.leave(strange)
    assert groups.join(leader).generation_id == 3
    assert groups.sync(leader, assignments={leader: b"all"}).assignment == b"all"


def test_a_new_rebalance_sends_those_who_await_their_assignment_back_to_join() -> None:
    groups = Groups()
    _, second, _ = completing_group(groups)
    parked = groups.send_sync(second)
    groups.parked_join()
    assert parked.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_do_not_sync_within_the_rebalance_timeout_are_out() -> None:
    groups = Groups()
    leader, second, third = completing_group(groups)
    parked = groups.send_sync(second)
    for _ in range(7):
        for member_id in (leader, third):
            groups.heartbeat(member_id, 2)
        groups.advance(REBALANCE_MS // 6 - 1_000)
    assert parked.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert set(groups.group().members) == {second}
    assert groups.join(second).generation_id == 3


def test_a_member_that_does_not_sync_with_a_stable_group_is_out_as_well() -> None:
    groups = Groups()
    leader, second, third = completing_group(groups)
    groups.send_sync(second)
    groups.sync(leader, assignments={})
    for _ in range(7):
        for member_id in (leader, second, third):
            groups.heartbeat(member_id, 2)
        groups.advance(REBALANCE_MS // 6 - 1_000)
    assert groups.group().state is ClassicState.PREPARING_REBALANCE
    assert set(groups.group().members) == {leader, second}


def test_when_all_have_synced_nobody_is_put_out() -> None:
    groups = Groups()
    members = groups.stable_group(3)
    for _ in range(20):
        for member_id in members:
            assert groups.heartbeat(member_id) is ErrorCode.NONE
        groups.advance(SESSION_MS - 1)
    assert groups.group().state is ClassicState.STABLE


def test_a_member_that_waits_in_a_sync_needs_no_heartbeats_and_then_has_a_whole_session() -> None:
    groups = Groups()
    leader, second, third = completing_group(groups)
    parked = [groups.send_sync(second), groups.send_sync(third)]
    for _ in range(5):
        groups.heartbeat(leader, 2)
        groups.advance(SESSION_MS - 1)
    assert not any(waiting.done() for waiting in parked)
    groups.sync(leader, assignments={})
    groups.advance(SESSION_MS - 1)
    assert groups.heartbeat(second) is ErrorCode.NONE


def test_a_commit_keeps_a_member_alive() -> None:
    groups = Groups()
    (member_id,) = groups.stable_group(1)
    for offset in range(5):
        groups.advance(SESSION_MS - 1)
        groups.commit(offset, member_id=member_id, generation_id=1)
    assert groups.group().state is ClassicState.STABLE


def test_a_commit_that_could_not_be_written_keeps_a_member_alive_as_well() -> None:
    groups = Groups()
    (member_id,) = groups.stable_group(1)
    for offset in range(5):
        groups.advance(SESSION_MS - 1)
        groups.logs[0].fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "")
        with pytest.raises(ApiError):
            groups.commit(offset, member_id=member_id, generation_id=1)
    assert groups.group().state is ClassicState.STABLE


def test_the_protocol_of_a_sync_must_be_the_groups() -> None:
    groups = Groups()
    leader = groups.join().member_id
    for words in ({"protocol_type": "connect"}, {"protocol_name": "sticky"}):
        refused = groups.sync(leader, **words)
        assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.sync(leader, protocol_name="range").error_code == ErrorCode.NONE


def test_several_members_leave_at_once_and_each_gets_its_answer() -> None:
    groups = Groups()
    leader, second, third = groups.stable_group(3)
    answer = groups.leave(leader, "stranger", second)
    codes = [member.error_code for member in answer.members]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]
    assert groups.group().leader_id == third
    assert groups.join(third).generation_id == 3


def test_a_static_member_is_removed_by_its_instance_id_alone() -> None:
    groups = Groups()
    member_id = groups.join(instance="i1").member_id
    groups.sync(member_id, instance="i1")
    leave = groups.coordinator.members.leave_group
    unknown = LeaveGroupMemberIdentity(member_id="", group_instance_id="i2")
    fenced = LeaveGroupMemberIdentity(member_id="other", group_instance_id="i1")
    nobody = LeaveGroupMemberIdentity(member_id="")
    codes = [m.error_code for m in leave(GROUP, [unknown, fenced, nobody]).members]
    assert codes == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    known = LeaveGroupMemberIdentity(member_id="", group_instance_id="i1")
    (answer,) = leave(GROUP, [known]).members
    assert (answer.member_id, answer.group_instance_id, answer.error_code) == ("", "i1", 0)
    assert groups.group().state is ClassicState.EMPTY


def test_whoever_names_neither_member_nor_instance_removes_nobody() -> None:
    groups = Groups()
    member_id = groups.join(instance="").member_id
    groups.sync(member_id, instance="")
    leave = groups.coordinator.members.leave_group
    (answer,) = leave(GROUP, [LeaveGroupMemberIdentity(member_id="")]).members
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    named = LeaveGroupMemberIdentity(member_id="", group_instance_id="")
    assert leave(GROUP, [named]).members[0].error_code == ErrorCode.NONE


def test_why_a_group_rebalances_is_said_in_the_words_of_those_who_leave() -> None:
    groups = Groups()
    leader, follower = groups.stable_group(2)
    static, waiting = groups.parked_join(instance="i1")
    for member_id in (leader, follower):
        groups.send_join(member_id)
    assert waiting.done()
    leaving = [
        LeaveGroupMemberIdentity(member_id=follower, reason="the consumer is being closed"),
        LeaveGroupMemberIdentity(member_id="", group_instance_id="i1"),
        LeaveGroupMemberIdentity(member_id="stranger"),
    ]
    groups.coordinator.members.leave_group(GROUP, leaving)
    expected = f"{follower} (the consumer is being closed), i1 left"
    assert groups.group().rebalance_reason == expected
    assert static not in groups.group().members


def test_of_many_who_leave_at_once_a_few_are_named() -> None:
    groups = Groups()
    leader, *others = groups.stable_group(9)
    groups.leave(*others)
    assert groups.group().rebalance_reason == f"{', '.join(others[:5])} and 3 more left"
    assert groups.join(leader).generation_id == 3


def test_many_members_leave_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classic_group_service, "LEAVES_AT_ONCE", 2)
    groups = Groups()
    leader, *others = groups.stable_group(6)
    leaving = [LeaveGroupMemberIdentity(member_id=member_id) for member_id in others]
    sizes: list[int] = []
    groups.coordinator.members.leave_group(
        GROUP, leaving, lambda: sizes.append(len(groups.group().members))
    )
    assert sizes[len(leaving) :] == [6, 4, 2], "the members at the steps after the look-ups"
    assert list(groups.group().members) == [leader]
    assert groups.join(leader).generation_id == 3


def test_a_leave_that_is_cancelled_between_two_parts_has_begun_a_rebalance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(classic_group_service, "LEAVES_AT_ONCE", 1)
    groups = Groups()
    leader, *others = groups.stable_group(3)
    leaving = [LeaveGroupMemberIdentity(member_id=member_id) for member_id in others]

    def step() -> None:
        if len(groups.group().members) == 2:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        groups.coordinator.members.leave_group(GROUP, leaving, step)
    assert groups.group().state is ClassicState.PREPARING_REBALANCE
    waiting = groups.send_join(leader)
    groups.loop.advance(REBALANCE_MS)
    assert waiting.done()


def test_a_member_that_was_only_promised_an_id_can_leave() -> None:
    groups = Groups()
    asked = groups.send_join()
    assert groups.leave(asked.member_id).members[0].error_code == ErrorCode.NONE
    assert groups.send_join(asked.member_id).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_a_group_that_does_not_exist_is_told_to_each_member() -> None:
    answer = Groups().leave("a", "b")
    assert answer.error_code == ErrorCode.NONE
    assert [m.error_code for m in answer.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_a_member_that_is_removed_while_it_waits_is_told_so() -> None:
    groups = Groups()
    _, second, _ = completing_group(groups)
    parked = groups.send_sync(second)
    groups.leave(second)
    assert parked.response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
