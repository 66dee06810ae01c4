"""Members that leave, leave temporarily, or are removed after a missed deadline."""

import pytest

from odradek.coordinator.consumer_groups.group import ConsumerState
from odradek.coordinator.modern_groups.member import MemberState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from tests.support.both_lives import assert_cleaned_log_agrees
from tests.support.group_snapshot import consumer_group_snapshot
from tests.support.heartbeats import REBALANCE_MS, SESSION_MS, Heartbeats, refusal
from tests.support.journals import keys_since, records_since

STRANGER = ErrorCode.UNKNOWN_MEMBER_ID


@pytest.fixture
def beats() -> Heartbeats:
    beats = Heartbeats()
    beats.topic("t", 2)
    return beats


# -- leaving for good


def test_a_member_that_leaves_frees_what_it_had(beats: Heartbeats) -> None:
    beats.join("a", "t")
    beats.join("b", "t")
    answer = beats.beat("a", -1)
    assert (answer.member_id, answer.member_epoch) == ("a", -1)
    assert (answer.heartbeat_interval_ms, answer.assignment) == (0, None)
    assert list(beats.group().members) == ["b"]
    last = beats.beat("b", 3)
    assert (last.member_epoch, beats.assigned(last)) == (4, {"t": [0, 1]})


def test_a_leave_writes_its_tombstones_in_kafkas_order(beats: Heartbeats) -> None:
    beats.join("a", "t")
    log = beats.groups.logs[0]
    before = log.log_end_offset
    beats.leave("a")
    assert keys_since(log, before) == [
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupMetadataKey,
        ConsumerGroupTargetAssignmentMetadataKey,
    ]
    assert beats.group().state is ConsumerState.EMPTY
    assert beats.group().assignment_epoch == beats.group().epoch


def test_the_first_member_after_the_last_need_not_wait_for_the_assignment_interval() -> None:
    beats = Heartbeats(assignment_interval_ms=10_000)
    beats.topic("t", 1)
    beats.join("a", "t")
    beats.leave("a")
    beats.join("b", "t")
    assert beats.member("b").assigned


def test_the_log_names_a_few_of_many_members_that_leave(
    beats: Heartbeats, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"m{number}" for number in range(8)]
    for name in names:
        beats.join(name, "t")
    with caplog.at_level("INFO", "odradek.groups"):
        beats.groups.leave(*names)
    assert any(f"{', '.join(names[:5])} and 3 more" in line for line in caplog.messages)
    assert names[-1] not in caplog.text


def test_who_has_left_is_heard_of_no_more(beats: Heartbeats) -> None:
    beats.join("a", "t")
    beats.join("b", "t")
    assert beats.leave("a") is ErrorCode.NONE
    assert beats.leave("a") is STRANGER
    written = beats.batches
    for _ in range(4):
        beats.advance(SESSION_MS // 2)
        beats.beat("b", beats.member("b").member_epoch)
    assert list(beats.group().members) == ["b"]
    assert beats.batches == written + 1
    assert len(beats.groups.coordinator.consumer_groups.deadlines.sessions) == 1


def test_a_leave_that_cannot_be_written_leaves_the_member_in(beats: Heartbeats) -> None:
    beats.join("a", "t")
    before = consumer_group_snapshot(beats.group())
    beats.fail_next_append()
    assert beats.leave("a") is ErrorCode.NOT_COORDINATOR
    assert consumer_group_snapshot(beats.group()) == before
    beats.advance(SESSION_MS)
    assert beats.group().state is ConsumerState.EMPTY


# -- sessions


def test_a_member_that_is_silent_for_its_session_is_out(beats: Heartbeats) -> None:
    beats.join("a", "t")
    beats.join("b", "t")
    beats.advance(SESSION_MS - 1)
    beats.beat("b", 3)
    assert set(beats.group().members) == {"a", "b"}
    beats.advance(1)
    assert list(beats.group().members) == ["b"]
    assert beats.refusal("a", 2) is STRANGER
    assert beats.assigned(beats.beat("b", 3)) == {"t": [0, 1]}


def test_a_group_may_have_a_session_timeout_of_its_own() -> None:
    beats = Heartbeats(overrides={"own": {"consumer.session.timeout.ms": "50000"}})
    beats.topic("t", 1)
    beats.join("a", "t", group_id="own")
    beats.advance(49_999)
    assert beats.group("own").members
    beats.advance(1)
    assert not beats.group("own").members


def test_a_restart_gives_every_member_a_whole_session(beats: Heartbeats) -> None:
    beats.join("a", "t")
    beats.advance(SESSION_MS - 1)
    after = beats.restarted()
    after.advance(SESSION_MS - 1)
    assert after.beat("a", 2).error_code == ErrorCode.NONE
    after.advance(SESSION_MS)
    assert not after.group().members


def test_who_cannot_be_put_out_is_put_out_a_little_later(
    beats: Heartbeats, caplog: pytest.LogCaptureFixture
) -> None:
    beats.join("a", "t")
    beats.fail_next_append()
    beats.advance(SESSION_MS)
    assert "could not be written" in caplog.text
    assert list(beats.group().members) == ["a"]
    beats.advance(500)
    assert not beats.group().members


def test_a_heartbeat_saves_a_member_that_could_not_be_put_out(beats: Heartbeats) -> None:
    beats.join("a", "t")
    beats.fail_next_append()
    beats.advance(SESSION_MS)
    assert beats.beat("a", 2).error_code == ErrorCode.NONE
    beats.advance(500)
    assert list(beats.group().members) == ["a"]


# -- revocations


def revoking(beats: Heartbeats) -> None:
    """`a` must give partitions up to `b`."""
    beats.join("a", "t", rebalance_timeout_ms=30_000)
    beats.join("b", "t")
    beats.beat("a", 2)
    assert beats.member("a").state is MemberState.UNREVOKED_PARTITIONS


def test_who_does_not_give_up_partitions_in_time_is_out_though_it_speaks(
    beats: Heartbeats,
) -> None:
    revoking(beats)
    beats.advance(29_999)
    assert beats.beat("a", 2).member_epoch == 2
    assert beats.beat("b", 3).member_epoch == 3
    beats.advance(1)
    assert beats.refusal("a", 2) is STRANGER
    assert beats.assigned(beats.beat("b", 3)) == {"t": [0, 1]}


def test_who_has_given_them_up_has_nothing_to_fear(beats: Heartbeats) -> None:
    revoking(beats)
    (mine,) = beats.group().target("a").values()
    assert beats.beat("a", 2, owned={"t": sorted(mine)}).member_epoch == 3
    beats.advance(40_000)
    assert set(beats.group().members) == {"a", "b"}


def test_a_restart_gives_them_the_whole_time_again(beats: Heartbeats) -> None:
    revoking(beats)
    beats.advance(20_000)
    after = beats.restarted()
    after.advance(29_999)
    assert "a" in after.group().members
    after.advance(1)
    assert "a" not in after.group().members


# -- static members


def away(beats: Heartbeats) -> None:
    """`a`, which is instance `i`, has gone for a while."""
    beats.join("a", "t", instance="i")
    answer = beats.beat("a", -2, instance="i")
    assert (answer.member_id, answer.member_epoch) == ("a", -2)


def test_a_static_member_that_comes_back_under_another_id_has_what_it_had(
    beats: Heartbeats,
) -> None:
    beats.join("a", "t", instance="i")
    beats.join("b", "t")
    (mine,) = beats.group().target("a").values()
    beats.beat("a", 2, instance="i")
    beats.beat("a", 2, owned={"t": sorted(mine)}, instance="i")
    beats.beat("b", 3)
    assert beats.group().state is ConsumerState.STABLE
    beats.beat("a", -2, instance="i")
    assert beats.group().state is ConsumerState.RECONCILING
    assert beats.beat("b", 3).assignment is None
    answer = beats.join("c", "t", instance="i")
    assert (answer.member_epoch, beats.assigned(answer)) == (3, {"t": sorted(mine)})
    assert set(beats.group().members) == {"b", "c"}
    assert (beats.group().epoch, beats.group().state) == (3, ConsumerState.STABLE)
    assert list(beats.group().target("c").values()) == [mine]
    assert beats.beat("c", 3, owned={"t": sorted(mine)}, instance="i").assignment is None


def test_to_take_a_place_writes_the_member_anew_with_what_it_shall_have(
    beats: Heartbeats,
) -> None:
    away(beats)
    log = beats.groups.logs[0]
    before = log.log_end_offset
    beats.join("c", "t", instance="i")
    records = records_since(log, before)
    assert [(type(one.key), one.value is None) for one in records] == [
        (ConsumerGroupCurrentMemberAssignmentKey, True),
        (ConsumerGroupTargetAssignmentMemberKey, True),
        (ConsumerGroupMemberMetadataKey, True),
        (ConsumerGroupMemberMetadataKey, False),
        (ConsumerGroupTargetAssignmentMemberKey, False),
        (ConsumerGroupCurrentMemberAssignmentKey, False),
        (ConsumerGroupCurrentMemberAssignmentKey, False),
    ]
    anew, reconciled = (one.value for one in records[-2:])
    assert isinstance(anew, ConsumerGroupCurrentMemberAssignmentValue)
    assert isinstance(reconciled, ConsumerGroupCurrentMemberAssignmentValue)
    assert (anew.member_epoch, anew.previous_member_epoch) == (0, 0)
    assert (reconciled.member_epoch, reconciled.previous_member_epoch) == (2, 0)


def test_who_comes_in_its_place_has_it_from_the_start_on(beats: Heartbeats) -> None:
    away(beats)
    beats.join("c", "t", instance="i")
    (epochs,) = beats.member("c").assigned.values()
    assert set(epochs.values()) == {0}


def test_it_may_come_back_under_its_own_id(beats: Heartbeats) -> None:
    away(beats)
    answer = beats.join("a", "t", instance="i")
    assert (answer.member_epoch, beats.assigned(answer)) == (2, {"t": [0, 1]})


def test_it_may_come_back_with_another_subscription(beats: Heartbeats) -> None:
    beats.topic("u", 1)
    away(beats)
    answer = beats.join("c", "t", "u", instance="i")
    assert (answer.member_epoch, beats.assigned(answer)) == (3, {"t": [0, 1], "u": [0]})


def test_a_static_member_that_stays_away_is_out_when_its_session_ends(beats: Heartbeats) -> None:
    away(beats)
    beats.advance(SESSION_MS - 1)
    assert beats.group().members
    beats.advance(1)
    assert not beats.group().members
    assert not beats.group().static_member_ids


def test_the_session_of_the_one_before_does_not_end_that_of_the_one_after(
    beats: Heartbeats,
) -> None:
    away(beats)
    beats.advance(SESSION_MS - 1)
    beats.join("c", "t", instance="i")
    beats.advance(SESSION_MS - 1)
    assert list(beats.group().members) == ["c"]
    assert beats.beat("c", 2, instance="i").error_code == ErrorCode.NONE


def test_an_instance_that_is_there_lets_nobody_in_its_place(beats: Heartbeats) -> None:
    beats.join("a", "t", instance="i")
    for newcomer in ("b", "a"):
        answer = beats.join(newcomer, "t", instance="i")
        assert refusal(answer) is ErrorCode.UNRELEASED_INSTANCE_ID
        assert answer.error_message == (
            f"Static member {newcomer} with instance id i cannot join the group because the "
            "instance id is owned by a member."
        )


def test_an_instance_id_that_its_member_has_changed_is_free(beats: Heartbeats) -> None:
    beats.join("a", "t", instance="i")
    beats.join("a", "t", instance="j")
    assert beats.group().static_member_ids == {"j": "a"}
    assert_cleaned_log_agrees(beats.groups)
    beats.leave("a", instance="j")
    assert beats.join("b", "t", instance="i").error_code == ErrorCode.NONE


def test_who_lost_its_place_is_fenced(beats: Heartbeats) -> None:
    away(beats)
    beats.join("c", "t", instance="i")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    for epoch in (2, -1, -2):
        assert beats.refusal("a", epoch, instance="i") is fenced
    assert beats.refusal("a", 2) is STRANGER


def test_an_instance_that_nobody_has_is_unknown(beats: Heartbeats) -> None:
    beats.join("a", "t", instance="i")
    for epoch in (2, -1, -2):
        assert beats.refusal("a", epoch, instance="j") is STRANGER


def test_while_it_is_away_no_epoch_of_its_is_good(beats: Heartbeats) -> None:
    beats.join("a", "t", instance="i")
    beats.topic("u", 1)
    beats.beat("a", 2, topics=["t", "u"], instance="i")
    assert beats.member("a").previous_member_epoch == 2
    beats.beat("a", -2, instance="i")
    for epoch in (2, 3):
        refused = beats.refusal("a", epoch, owned={}, instance="i")
        assert refused is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_static_member_may_leave_for_good(beats: Heartbeats) -> None:
    beats.join("a", "t", instance="i")
    assert beats.leave("a", instance="i") is ErrorCode.NONE
    assert not beats.group().members
    assert beats.join("b", "t", instance="i").error_code == ErrorCode.NONE


def test_one_that_went_while_it_gave_up_partitions_has_given_them_up(beats: Heartbeats) -> None:
    beats.join("a", "t", instance="i")
    beats.join("b", "t")
    beats.beat("a", 2, instance="i")
    beats.beat("a", -2, instance="i")
    assert beats.member("a").pending_revocation == {}
    assert beats.assigned(beats.beat("b", 3)) is not None
    beats.advance(REBALANCE_MS - 1)
    assert "b" not in beats.group().members  # silent for its session, as is `a`


def test_a_place_that_could_not_be_taken_is_still_free(beats: Heartbeats) -> None:
    away(beats)
    before = consumer_group_snapshot(beats.group())
    beats.fail_next_append()
    assert refusal(beats.join("c", "t", instance="i")) is ErrorCode.NOT_COORDINATOR
    assert consumer_group_snapshot(beats.group()) == before
    assert beats.join("c", "t", instance="i").member_epoch == 2


def test_a_restart_knows_who_is_away(beats: Heartbeats) -> None:
    away(beats)
    after = beats.restarted()
    answer = after.join("c", "t", instance="i")
    assert (answer.member_epoch, after.assigned(answer)) == (2, {"t": [0, 1]})
