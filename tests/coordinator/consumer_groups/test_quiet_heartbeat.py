"""Quiet heartbeats: the fast path gives the same result as the full path."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.groups.consumer_group_service import ConsumerGroupService
from odradek.coordinator.runtime.steps import no_step
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.coordinator.consumer_groups.test_heartbeat_machine import TOPICS, Client, Group
from tests.support.heartbeats import REBALANCE_MS, SESSION_MS, Heartbeats
from tests.support.lengths import by_length

names = st.lists(st.sampled_from(TOPICS), unique=True, max_size=3)


class Quiet:
    """Goes both ways wherever the short one is taken, and counts how often that is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        short = ConsumerGroupService._renew_session
        quiet = self

        def both(
            service: ConsumerGroupService,
            group: ConsumerGroup,
            request: ConsumerGroupHeartbeatRequest,
            now: Now,
        ) -> ConsumerGroupHeartbeatResponse:
            quiet.count += 1
            caller = quiet.caller_of(group, request)
            long = service._heartbeats.serve(group, group.partition, request, caller, now, no_step)
            answer = short(service, group, request, now)
            assert long.reply.reply == answer
            assert not long.records
            assert long.reply.topics_checked_offset is None
            assert len(long.then) == 1, "more than a longer session"
            return answer

        monkeypatch.setattr(ConsumerGroupService, "_renew_session", both)

    @staticmethod
    def caller_of(group: Any, request: ConsumerGroupHeartbeatRequest) -> Caller:
        member = group.members[request.member_id]
        return Caller(member.client_id, member.client_host, 1)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> Quiet:
    return Quiet(monkeypatch)


@pytest.fixture
def beats() -> Heartbeats:
    made = Heartbeats()
    made.topic("t", 2)
    return made


def stable(beats: Heartbeats, **words: Any) -> int:
    """Create a member "m" that has reached its target; return its epoch."""
    return beats.join("m", "t", **words).member_epoch


def test_a_heartbeat_of_a_member_at_its_target_is_quiet(beats: Heartbeats, quiet: Quiet) -> None:
    epoch = stable(beats)
    answer = beats.beat("m", epoch)
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, epoch, None)
    assert quiet.count == 1


def test_a_quiet_heartbeat_may_report_the_owned_partitions(beats: Heartbeats, quiet: Quiet) -> None:
    epoch = stable(beats)
    answer = beats.beat("m", epoch, owned={"t": [0, 1]})
    assert (answer.error_code, answer.member_epoch, answer.assignment) == (0, epoch, None)
    assert quiet.count == 1


def test_heartbeats_are_quiet_while_the_group_waits_for_its_next_targets(quiet: Quiet) -> None:
    beats = Heartbeats(assignment_interval_ms=1000)
    beats.topic("t", 2)
    epoch = stable(beats)
    beats.join("n", "t")
    beats.advance(999)
    answer = beats.beat("m", epoch)
    assert (answer.member_epoch, answer.assignment) == (epoch, None)
    assert quiet.count == 1
    beats.advance(1)
    answer = beats.beat("m", epoch)
    assert beats.assigned(answer) == {"t": [0]}
    assert quiet.count == 1


def test_a_quiet_heartbeat_keeps_the_member_in_the_group(beats: Heartbeats, quiet: Quiet) -> None:
    epoch = stable(beats)
    for _ in range(3):
        beats.advance(SESSION_MS - 1)
        assert beats.beat("m", epoch).error_code == ErrorCode.NONE
    assert quiet.count == 3
    beats.advance(SESSION_MS + 1)
    assert beats.refusal("m", epoch) is not ErrorCode.NONE


def test_a_static_member_is_quiet_too(beats: Heartbeats, quiet: Quiet) -> None:
    epoch = stable(beats, instance="i")
    beats.beat("m", epoch, instance="i")
    assert quiet.count == 1


@pytest.mark.parametrize(
    "words",
    [
        {"topics": ["t"]},
        {"regex": ""},
        {"server_assignor": "range"},
        {"rebalance_timeout_ms": REBALANCE_MS},
        {"rack_id": "r"},
        {"instance": "i"},
        {"client_id": "another"},
    ],
    ids=lambda words: next(iter(words)),
)
def test_a_heartbeat_that_reports_a_change_is_not_quiet(
    beats: Heartbeats, quiet: Quiet, words: dict[str, Any]
) -> None:
    beats.beat("m", stable(beats), **words)
    assert quiet.count == 0


def test_a_heartbeat_with_another_epoch_is_not_quiet(beats: Heartbeats, quiet: Quiet) -> None:
    epoch = stable(beats)
    assert beats.refusal("m", epoch + 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert beats.refusal("m", epoch - 1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert quiet.count == 0


def test_the_first_heartbeat_after_a_change_of_topics_or_targets_is_not_quiet(
    beats: Heartbeats, quiet: Quiet
) -> None:
    epoch = stable(beats)
    beats.grow("t", 3)
    grown = beats.beat("m", epoch)
    assert grown.member_epoch > epoch
    beats.join("n", "t")
    assert beats.beat("m", grown.member_epoch).assignment is not None
    assert quiet.count == 0


def test_no_heartbeat_of_a_group_with_regular_expressions_is_quiet(
    beats: Heartbeats, quiet: Quiet
) -> None:
    epoch = stable(beats)
    beats.join("n", regex="t.*")
    beats.beat("m", epoch)
    assert quiet.count == 0


class GroupOfNames(Group):
    """No member has an expression, because then no heartbeat would be quiet."""

    @rule(target=Group.clients, names=names, static=st.booleans())
    def comes(self, names: list[str], static: bool) -> Client:
        return super().comes((names, ""), static)

    @rule(client=Group.clients, names=names)
    def changes_its_mind(self, client: Client, names: list[str]) -> None:
        super().changes_its_mind(client, (names, ""))


def test_both_paths_give_equal_results_for_random_steps(quiet: Quiet) -> None:
    run_state_machine_as_test(
        GroupOfNames,
        settings=settings(
            max_examples=by_length(20, 300),
            stateful_step_count=by_length(30, 80),
            deadline=None,
        ),
    )
    assert quiet.count
