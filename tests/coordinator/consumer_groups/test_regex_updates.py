"""Subscriptions by regular expression, and topics that are created, extended and deleted."""

import pytest

from odradek.coordinator.consumer_groups.group import ConsumerState
from odradek.protocol.errors import ErrorCode
from tests.support.consumer_members import all_subscribe_alike
from tests.support.group_snapshot import consumer_group_snapshot
from tests.support.groups import GROUP
from tests.support.heartbeats import Heartbeats, refusal

TEN_SECONDS_MS = 10_000
HOUR_MS = 3_600_000
PATTERN = "t-.*"


@pytest.fixture
def beats() -> Heartbeats:
    beats = Heartbeats()
    beats.topic("t-a", 1)
    beats.topic("t-b", 2)
    beats.topic("other", 1)
    return beats


def join(beats: Heartbeats, member: str = "a", regex: str = PATTERN) -> None:
    """A member that subscribes by an expression; it is not resolved yet."""
    answer = beats.beat(member, 0, owned={}, regex=regex, rebalance_timeout_ms=60_000)
    assert answer.error_code == ErrorCode.NONE, answer


def resolved(beats: Heartbeats, regex: str = PATTERN) -> set[str] | None:
    """What an expression stands for."""
    found = beats.group().subscriptions.resolved_regexes.get(regex)
    return None if found is None else set(found.topics)


# -- resolving


def test_a_member_with_an_expression_gets_partitions_when_it_is_resolved(
    beats: Heartbeats,
) -> None:
    join(beats)
    assert (beats.member("a").member_epoch, resolved(beats)) == (1, None)
    assert beats.group().state is ConsumerState.STABLE
    beats.advance()
    assert resolved(beats) == {"t-a", "t-b"}
    assert beats.group().state is ConsumerState.ASSIGNING
    answer = beats.beat("a", 1)
    assert (answer.member_epoch, beats.assigned(answer)) == (2, {"t-a": [0], "t-b": [0, 1]})


def test_an_expression_matches_topics_that_the_client_may_describe(beats: Heartbeats) -> None:
    beats.may_describe = {"t-b", "other"}.__contains__
    join(beats)
    beats.advance()
    assert resolved(beats) == {"t-b"}
    # The next resolution is for the client that starts it.
    beats.may_describe = {"t-a"}.__contains__
    beats.beat("a", 1)
    assert resolved(beats) == {"t-b"}
    beats.topic("t-c", 1)
    beats.advance(TEN_SECONDS_MS + 1)
    beats.beat("a", 2)
    beats.advance()
    assert resolved(beats) == {"t-a"}


def test_a_second_member_with_the_same_expression_need_not_wait(beats: Heartbeats) -> None:
    join(beats)
    beats.advance()
    beats.beat("a", 1)
    join(beats, "b")
    assert beats.member("b").member_epoch == 3
    assert all_subscribe_alike(beats.group())


def test_an_expression_that_matches_nothing_is_resolved_to_nothing(beats: Heartbeats) -> None:
    join(beats, regex="nothing")
    beats.advance()
    assert resolved(beats, "nothing") == set()
    assert beats.group().epoch == 1


def test_an_invalid_expression_is_refused_and_the_member_is_unchanged(
    beats: Heartbeats,
) -> None:
    beats.join("a", "other")
    before = consumer_group_snapshot(beats.group())
    assert beats.refusal("a", 2, regex="(") is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert consumer_group_snapshot(beats.group()) == before
    invalid = beats.beat("b", 0, owned={}, regex="(", rebalance_timeout_ms=1)
    assert refusal(invalid) is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_names_and_an_expression_may_be_combined(beats: Heartbeats) -> None:
    beats.join("a", "other", regex="t-a")
    beats.advance()
    answer = beats.beat("a", 2)
    assert beats.assigned(answer) == {"other": [0], "t-a": [0]}


def test_an_expression_is_removed_with_its_last_subscriber(beats: Heartbeats) -> None:
    join(beats)
    join(beats, "b")
    beats.advance()
    beats.leave("a")
    assert resolved(beats) == {"t-a", "t-b"}
    beats.leave("b")
    assert resolved(beats) is None
    assert not beats.group().subscriptions.topics


def test_an_expression_stays_while_another_member_subscribes_to_it(beats: Heartbeats) -> None:
    join(beats)
    join(beats, "b")
    beats.advance()
    beats.beat("b", 1, regex="", topics=["other"])
    assert resolved(beats) == {"t-a", "t-b"}


def test_a_member_that_drops_its_expression_has_no_subscription_at_once(beats: Heartbeats) -> None:
    join(beats)
    beats.advance()
    beats.beat("a", 1)
    answer = beats.beat("a", 2, regex="", owned={})
    assert (answer.member_epoch, beats.assigned(answer)) == (3, {})
    assert beats.group().epoch == 3


def test_the_topics_of_a_removed_expression_cause_no_rebalance(beats: Heartbeats) -> None:
    beats.join("b", "other")
    join(beats)
    beats.advance()
    beats.beat("a", 2)
    beats.leave("a")
    epoch = beats.group().epoch
    beats.grow("t-b", 3)
    beats.beat("b", beats.member("b").member_epoch, owned={"other": [0]})
    assert beats.group().epoch == epoch


def test_a_member_may_change_from_an_expression_to_names(beats: Heartbeats) -> None:
    join(beats)
    beats.advance()
    beats.beat("a", 1)
    answer = beats.beat("a", 2, regex="", topics=["other"], owned={})
    assert (answer.member_epoch, beats.assigned(answer)) == (3, {"other": [0]})
    assert resolved(beats) is None


def test_a_member_may_change_its_expression_and_keeps_what_the_new_one_covers(
    beats: Heartbeats,
) -> None:
    join(beats)
    beats.advance()
    everything = beats.assigned(beats.beat("a", 1))
    beats.advance(TEN_SECONDS_MS + 1)
    answer = beats.beat("a", 2, regex="t-a", owned=everything)
    assert beats.assigned(answer) == {}
    beats.advance()
    beats.beat("a", 2, owned={})
    assert beats.assigned(beats.beat("a", 3)) is None
    assert beats.member("a").member_epoch == 3


# -- when they are looked at again


def test_topics_that_are_created_are_found_by_heartbeats_after_ten_seconds(
    beats: Heartbeats,
) -> None:
    join(beats)
    beats.advance()
    beats.beat("a", 1)
    beats.topic("t-new", 1)
    beats.advance(TEN_SECONDS_MS)
    beats.beat("a", 2)
    beats.advance()
    assert resolved(beats) == {"t-a", "t-b"}
    beats.advance(1)
    beats.beat("a", 2)
    beats.advance()
    assert resolved(beats) == {"t-a", "t-b", "t-new"}
    assert beats.assigned(beats.beat("a", 2)) == {"t-a": [0], "t-b": [0, 1], "t-new": [0]}


@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS])
def test_the_ten_seconds_do_not_depend_on_the_wall_clock(beats: Heartbeats, step_ms: int) -> None:
    join(beats)
    beats.advance()
    beats.topic("t-new", 1)
    beats.loop.wall_ahead_ms += step_ms
    beats.advance(TEN_SECONDS_MS)
    beats.beat("a", 1)
    beats.advance()
    assert resolved(beats) == {"t-a", "t-b"}
    beats.advance(1)
    beats.beat("a", 2)
    beats.advance()
    assert resolved(beats) == {"t-a", "t-b", "t-new"}


def test_without_new_topics_expressions_are_resolved_again_after_the_interval(
    beats: Heartbeats,
) -> None:
    join(beats)
    beats.advance()
    beats.beat("a", 1)
    for _ in range(20):
        beats.advance(30_000)
        beats.beat("a", 2)
    written = beats.batches
    beats.advance(1)
    beats.beat("a", 2)
    beats.advance()
    assert beats.batches == written + 1
    assert beats.group().epoch == 2


def test_deleted_topics_are_removed_from_the_assignment_at_the_next_heartbeat(
    beats: Heartbeats,
) -> None:
    join(beats)
    beats.advance()
    beats.beat("a", 1)
    beats.delete("t-a")
    assert beats.assigned(beats.beat("a", 2, owned={"t-b": [0, 1]})) == {"t-b": [0, 1]}
    assert resolved(beats) == {"t-a", "t-b"}


def test_after_a_restart_expressions_are_resolved_again(beats: Heartbeats) -> None:
    join(beats)
    beats.advance()
    beats.beat("a", 1)
    beats.topic("t-new", 1)
    after = beats.restarted()
    after.advance(2 * TEN_SECONDS_MS)
    after.beat("a", 2)
    after.advance()
    assert resolved(after) == {"t-a", "t-b", "t-new"}


def test_two_heartbeats_start_one_resolution(beats: Heartbeats) -> None:
    join(beats)
    join(beats, "b", "t-b")
    beats.advance()
    assert (resolved(beats), resolved(beats, "t-b")) == ({"t-a", "t-b"}, None)
    beats.advance(TEN_SECONDS_MS + 1)
    beats.beat("b", 1)
    beats.advance()
    assert resolved(beats, "t-b") == {"t-b"}


def test_the_resolution_for_a_removed_group_is_dropped(beats: Heartbeats) -> None:
    join(beats)
    beats.leave("a")
    beats.groups.coordinator.admin.delete([GROUP])
    written = beats.batches
    beats.advance()
    assert beats.batches == written


def test_the_resolution_for_a_member_that_has_left_is_dropped(beats: Heartbeats) -> None:
    join(beats)
    beats.leave("a")
    beats.advance()
    assert resolved(beats) is None


def test_a_resolution_that_cannot_be_written_is_started_again(beats: Heartbeats) -> None:
    join(beats)
    beats.fail_next_append()
    beats.advance()
    assert resolved(beats) is None
    beats.beat("a", 1)
    beats.advance()
    assert resolved(beats) == {"t-a", "t-b"}


def test_many_topics_are_matched_between_other_requests(beats: Heartbeats) -> None:
    for n in range(1_200):
        beats.topic(f"many-{n}", 1)
    join(beats, regex=".*ny-1")
    turns = 0
    while resolved(beats, ".*ny-1") is None:
        (alarm,) = [one for one in beats.loop.alarms if one.at_ms <= beats.loop.now_ms]
        beats.loop.alarms.remove(alarm)
        alarm.ring()
        turns += 1
    assert turns > 2
    assert resolved(beats, ".*ny-1") == {"many-1"}


# -- topics by name


def test_a_topic_that_is_created_later_is_assigned_at_the_next_heartbeat(
    beats: Heartbeats,
) -> None:
    answer = beats.join("a", "later")
    assert (answer.member_epoch, beats.assigned(answer)) == (2, {})
    beats.topic("later", 2)
    answer = beats.beat("a", 2)
    assert (answer.member_epoch, beats.assigned(answer)) == (3, {"later": [0, 1]})


def test_partitions_that_are_added_are_assigned_at_the_next_heartbeat(beats: Heartbeats) -> None:
    beats.join("a", "t-b")
    beats.grow("t-b", 3)
    answer = beats.beat("a", 2)
    assert (answer.member_epoch, beats.assigned(answer)) == (3, {"t-b": [0, 1, 2]})


def test_a_topic_that_is_deleted_and_created_again_is_another_topic(beats: Heartbeats) -> None:
    beats.join("a", "other")
    old = beats.member("a").assigned
    beats.delete("other")
    beats.topic("other", 1)
    beats.beat("a", 2, owned={})
    assert beats.member("a").member_epoch == 3
    assert beats.member("a").assigned.keys() != old.keys()


def test_changes_of_unsubscribed_topics_cause_no_rebalance(beats: Heartbeats) -> None:
    beats.join("a", "other")
    beats.topic("nobody-reads", 1)
    beats.delete("t-a")
    assert beats.beat("a", 2).member_epoch == 2
    assert beats.batches == 1


def test_an_unresolved_expression_and_changes_of_other_topics_raise_no_epoch(
    beats: Heartbeats,
) -> None:
    join(beats)
    beats.advance()
    beats.beat("a", 1)
    beats.topic("another", 1)
    # The new one is not resolved yet: the epoch rises when it is.
    assert beats.beat("a", 2, regex="u-.*").member_epoch == 2
    beats.grow("another", 2)
    assert beats.beat("a", 2).member_epoch == 2
    assert beats.group().epoch == 2
