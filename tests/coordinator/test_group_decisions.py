"""A decision that takes long is made in slices, and committed if its group has not changed."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from odradek.broker.turns import group_slices
from odradek.broker.turns import slices as slices_module
from odradek.broker.turns.full_collections import FullCollections
from odradek.broker.turns.group_slices import GroupSlices
from odradek.broker.turns.large_turns import LargeTurns
from odradek.broker.turns.slices import SliceRunner, Surroundings
from odradek.coordinator.any_group.group_settings import MigrationPolicy
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.groups import group_decisions
from odradek.coordinator.groups.group_decisions import MANY_PARTITIONS, MAX_ATTEMPTS, GroupDecisions
from odradek.coordinator.groups.group_shards import GroupShard
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.runtime.timers import Now
from odradek.coordinator.streams_groups.group import StreamsGroup
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.both_lives import assert_log_agrees
from tests.support.classic_consumers import ClassicConsumer, Consumer, settle
from tests.support.groups import GROUP, Groups, classic_member
from tests.support.heartbeats import REBALANCE_MS, Heartbeats
from tests.support.streams_members import StreamsMembers
from tests.support.stretches import InSteps

T = TypeVar("T")

STEPS = 20


class Decided:
    """Decisions about one group, which note what they do."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        groups = Groups()
        self.shard: GroupShard = groups.coordinator.shards.of(GROUP)
        self.group = self.shard.state.groups[GROUP] = StreamsGroup(GROUP)
        self.done: list[str] = []
        runner = SliceRunner(
            LargeTurns(loop), Surroundings(lambda _: None, lambda: None), FullCollections()
        )
        self._clock = groups.loop.clock
        self._decisions = GroupDecisions(
            groups.coordinator.shards, groups.coordinator.alarm, GroupSlices(runner), self._clock
        )

    def begin(self, name: str, steps: int, before_end: Callable[[], None] = lambda: None) -> object:
        def decide(_shard: GroupShard, _now: Now, step: Step) -> Outcome[DraftResult[str]]:
            for _ in range(steps):
                step()
            self.done.append(name)
            before_end()
            return Outcome(reply=DraftResult(GROUP, name))

        return self._decisions.decide(self.shard, GROUP, decide, self._clock())

    def change_group(self) -> None:
        self.group.changes += 1


@pytest.fixture
async def decided(monkeypatch: pytest.MonkeyPatch) -> Decided:
    """Decisions in which each step ends a slice, and none with a step is made at once."""
    monkeypatch.setattr(slices_module, "SLICE_S", 0.0)
    monkeypatch.setattr(group_slices, "AT_ONCE_S", 0.0)
    return Decided()


async def reply_of(pending: object) -> str:
    assert isinstance(pending, asyncio.Future)
    reply: str = await pending
    return reply


async def test_a_short_decision_is_made_at_once(decided: Decided) -> None:
    assert decided.begin("short", 0) == "short"


async def test_the_loop_has_turns_while_a_long_decision_is_made(decided: Decided) -> None:
    long = decided.begin("long", STEPS)
    for _ in range(STEPS):
        await asyncio.sleep(0)
        assert not decided.done
    assert await reply_of(long) == "long"


async def test_a_short_decision_waits_for_a_long_one_of_its_group(decided: Decided) -> None:
    long = decided.begin("long", STEPS)
    for _ in range(5):
        await asyncio.sleep(0)
    short = decided.begin("short", 0)
    assert [await reply_of(short), await reply_of(long)] == ["short", "long"]
    assert decided.done == ["long", "short"]


async def test_a_decision_is_made_again_if_its_group_has_changed(decided: Decided) -> None:
    def change_once() -> None:
        if len(decided.done) == 1:
            decided.change_group()

    assert await reply_of(decided.begin("long", STEPS, change_once)) == "long"
    assert decided.done == ["long", "long"]


async def test_a_decision_is_made_again_if_its_group_is_another_one(decided: Decided) -> None:
    def replace_once() -> None:
        if len(decided.done) == 1:
            decided.shard.state.groups[GROUP] = StreamsGroup(GROUP)

    assert await reply_of(decided.begin("long", STEPS, replace_once)) == "long"
    assert decided.done == ["long", "long"]


async def test_a_decision_is_made_again_if_a_member_has_left_the_classic_group(
    decided: Decided,
) -> None:
    group = decided.shard.state.groups[GROUP] = ClassicGroup(GROUP)
    for member_id in ("stays", "leaves"):
        group.add(classic_member(member_id))

    def leave_once() -> None:
        group.remove("leaves")

    assert await reply_of(decided.begin("long", STEPS, leave_once)) == "long"
    assert decided.done == ["long", "long"]


async def test_a_decision_about_a_group_that_changes_all_the_time_is_refused(
    decided: Decided,
) -> None:
    with pytest.raises(ApiError) as refused:
        await reply_of(decided.begin("long", STEPS, decided.change_group))
    assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert len(decided.done) == MAX_ATTEMPTS


class Unhurried(InSteps):
    """Lets decisions take any time. Counts those that are made in steps all the same."""

    def __init__(self) -> None:
        self.in_steps = 0

    def limited(self) -> Step:
        return no_step

    def run(self, work: Callable[[Step], Coroutine[Any, Any, T]]) -> Any:
        self.in_steps += 1
        return super().run(work)


def test_a_member_of_which_only_the_target_changes_may_own_very_many_partitions() -> None:
    slicer = Unhurried()
    beats = Heartbeats(slicer=slicer)
    beats.topic("many", MANY_PARTITIONS + 1)
    first = beats.join("a", "many")
    beats.join("b", "many")
    assert slicer.in_steps == 0
    beats.beat("a", first.member_epoch)
    assert slicer.in_steps == 1


def test_a_decision_that_is_made_twice_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(group_decisions, "MANY_PARTITIONS", -1)
    caplog.set_level(logging.INFO, "odradek.groups")
    slicer = Unhurried()
    beats = Heartbeats(slicer=slicer, migration_policy=MigrationPolicy.UPGRADE)
    beats.topic("t", 4)
    old, new = ClassicConsumer(beats, "t"), Consumer(beats, "new", "t")
    settle(beats, old)
    settle(beats, new, old)
    before = slicer.in_steps
    assert new.leave() is ErrorCode.NONE
    assert slicer.in_steps == before + 1
    assert "cannot become a classic group: online downgrade is disabled" in caplog.text
    assert "removed new" in caplog.text
    assert len(caplog.messages) == len(set(caplog.messages))


@pytest.mark.parametrize("last_epoch", [-1, -2])
def test_a_consumer_that_owns_very_many_partitions_leaves_in_steps(last_epoch: int) -> None:
    slicer = Unhurried()
    beats = Heartbeats(slicer=slicer)
    beats.topic("few", 1)
    beats.topic("many", MANY_PARTITIONS + 1)
    for topic in ("few", "many"):
        beats.join("a", topic, instance="i")
        assert slicer.in_steps == 0
        beats.beat("a", last_epoch, instance="i")
    assert slicer.in_steps == 1
    assert_log_agrees(beats.groups)
    beats.advance(REBALANCE_MS)
    assert slicer.in_steps == (1 if last_epoch == -1 else 2), "its session has ended"
    assert beats.group().is_empty
    assert_log_agrees(beats.groups)


@pytest.mark.parametrize("last_epoch", [-1, -2])
def test_a_streams_member_that_owns_very_many_tasks_leaves_in_steps(last_epoch: int) -> None:
    slicer = Unhurried()
    members = StreamsMembers(slicer=slicer)
    members.topic("lines", MANY_PARTITIONS + 1)
    members.join("a", instance_id="i")
    assert slicer.in_steps == 0
    members.beat("a", last_epoch, instance_id="i")
    assert slicer.in_steps == 1
    assert_log_agrees(members.groups)
    members.advance(REBALANCE_MS)
    assert slicer.in_steps == (1 if last_epoch == -1 else 2), "its session has ended"
    assert members.group.is_empty
    assert_log_agrees(members.groups)
