"""What happens to a group between two slices of a decision, or two turns of what follows it."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from odradek.broker.turns import group_slices
from odradek.broker.turns import slices as slices_module
from odradek.broker.turns.full_collections import FullCollections
from odradek.broker.turns.group_slices import GroupSlices
from odradek.broker.turns.large_turns import LargeTurns
from odradek.broker.turns.slices import SliceRunner, Surroundings
from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.groups.modern_group_commits import RETRY_MS
from odradek.coordinator.modern_groups.member import MemberState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.classic_consumers import ClassicConsumer, Consumer, settle
from tests.support.groups import GROUP, Waiting
from tests.support.heartbeats import REBALANCE_MS, SESSION_MS, Heartbeats

MANY = 250  # more than are done in one turn
TURNS = 300
LATEST_TURN = 40


class Slicing:
    """Makes heartbeats whose decisions end a slice at each step, if they are told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(slices_module, "SLICE_S", 0.0)
        monkeypatch.setattr(group_slices, "AT_ONCE_S", 60.0)

    def heartbeats(self) -> Heartbeats:
        surroundings = Surroundings(lambda _: None, lambda: None)
        runner = SliceRunner(
            LargeTurns(asyncio.get_running_loop()), surroundings, FullCollections()
        )
        return Heartbeats(slicer=GroupSlices(runner))

    @contextmanager
    def at_each_step(self) -> Iterator[None]:
        with self._monkeypatch.context() as changed:
            changed.setattr(group_slices, "AT_ONCE_S", 0.0)
            yield


@pytest.fixture
def slicing(monkeypatch: pytest.MonkeyPatch) -> Slicing:
    return Slicing(monkeypatch)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def answer_of(reply: Any) -> Any:
    return await reply if isinstance(reply, Awaitable) else reply


async def test_a_member_leaves_although_its_client_has_gone(slicing: Slicing) -> None:
    beats = slicing.heartbeats()
    beats.topic("t", 6)
    for name in ("stays", "leaves", "leaves too"):
        beats.join(name, "t")
    with slicing.at_each_step():
        for name in ("leaves", "leaves too"):  # the second one waits for the first
            waiting = asyncio.ensure_future(answer_of(beats.beat(name, -1)))
            await turns(1)
            waiting.cancel()
        await turns(TURNS)
    assert list(beats.group().members) == ["stays"]


async def test_a_topic_that_is_deleted_while_targets_are_computed_is_no_error(
    slicing: Slicing,
) -> None:
    for turn in range(1, LATEST_TURN):
        beats = slicing.heartbeats()
        beats.topic("t", 6)
        beats.topic("u", 3)
        for name in ("a", "b", "c"):
            beats.join(name, "t", "u")
        beats.loop.now_ms += 1000
        with slicing.at_each_step():
            joining = asyncio.ensure_future(answer_of(beats.join("d", "t", "u")))
            await turns(turn)
            beats.delete("u")
            assert (await joining).error_code == ErrorCode.NONE, f"deleted at turn {turn}"


async def test_a_member_leaves_a_group_that_becomes_a_classic_group_meanwhile(
    slicing: Slicing,
) -> None:
    beats = slicing.heartbeats()
    beats.topic("t", 4)
    stays, leaves = ClassicConsumer(beats, "t"), ClassicConsumer(beats, "t")
    new = Consumer(beats, "new", "t")
    settle(beats, stays, leaves)
    settle(beats, new, stays, leaves)
    leaving = [LeaveGroupMemberIdentity(member_id=leaves.member_id)]
    with slicing.at_each_step():
        converting = asyncio.ensure_future(answer_of(beats.beat("new", -1)))
        await turns(4)
        reply = beats.groups.coordinator.members.leave_group(GROUP, leaving)
        answer = await answer_of(reply)
        await converting
    group = beats.groups.group()
    assert isinstance(group, ClassicGroup)
    assert (answer.error_code, answer.members[0].error_code) == (ErrorCode.NONE, ErrorCode.NONE)
    assert list(group.members) == [stays.member_id]


async def test_a_removal_of_members_can_be_waited_for(slicing: Slicing) -> None:
    beats = slicing.heartbeats()
    beats.topic("t", 4)
    for name in ("a", "b"):
        beats.join(name, "t")
    with slicing.at_each_step():
        removal = beats.groups.coordinator.members.remove_members(GROUP, ["a"])
        assert removal is not None
        await removal
    assert list(beats.group().members) == ["b"]


def test_all_who_wait_are_refused_if_the_shard_is_lost_after_an_upgrade() -> None:
    beats = Heartbeats()
    beats.topic("t", 6)
    groups = beats.groups
    for _ in range(MANY):
        groups.send_join("", version=3)
    members = list(groups.group().members)
    waiting = [groups.send_join(each, version=3) for each in members[1:]]
    assert beats.join("new", "t").error_code == ErrorCode.NONE
    groups.coordinator.partition_offline(0)
    for _ in range(5):
        beats.advance(1000)
    parked = [each for each in waiting if isinstance(each, Waiting)]
    assert len(parked) > MANY // 2
    assert all(each.done() for each in parked)


def test_no_session_of_a_group_begins_that_was_lost_after_a_downgrade(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beats = Heartbeats()
    beats.topic("t", 1)
    groups = beats.groups
    beats.join("new", "t", instance="i")
    for _ in range(MANY):
        groups.send_join("", version=3)
    epoch = beats.group().member("new").member_epoch
    beats.beat("new", epoch, owned={"t": [0]}, instance="i")
    with monkeypatch.context() as changed:
        changed.setattr(groups.loop, "advance", lambda _seconds: None)  # the turn does not end
        groups.send_join("", instance="i", version=3)
    old = groups.group()
    assert isinstance(old, ClassicGroup)
    groups.coordinator.partition_offline(0)
    beats.advance(0)
    begun = [each for each in old.members.values() if each.session and each.session.at_ms]
    assert begun == []


def one_member_of_each_protocol(slicing: Slicing) -> tuple[Heartbeats, ClassicConsumer, Consumer]:
    """Without the second one, the group would become a classic group."""
    beats = slicing.heartbeats()
    beats.topic("t", 4)
    stays = ClassicConsumer(beats, "t", session_ms=10 * SESSION_MS)
    new = Consumer(beats, "new", "t")
    settle(beats, new, stays)
    return beats, stays, new


async def test_a_session_that_is_renewed_while_a_removal_fails_keeps_its_length(
    slicing: Slicing,
) -> None:
    for turn in range(LATEST_TURN):
        beats, _, _ = one_member_of_each_protocol(slicing)
        beats.fail_next_append()
        with slicing.at_each_step():
            beats.advance(SESSION_MS)
            await turns(turn)
            beats.beat("new", beats.member("new").member_epoch)
            await turns(TURNS)
        beats.advance(2 * RETRY_MS)
        assert "new" in beats.group().members, f"renewed at turn {turn}"


async def test_a_removal_that_failed_is_tried_again(slicing: Slicing) -> None:
    beats, stays, _ = one_member_of_each_protocol(slicing)
    beats.fail_next_append()
    with slicing.at_each_step():
        beats.advance(SESSION_MS)
        await turns(TURNS)
    assert "new" in beats.group().members
    beats.advance(RETRY_MS)
    await turns(TURNS)
    assert list(beats.groups.group().members) == [stays.member_id]


async def test_heartbeats_do_not_prevent_that_a_removal_is_tried_again(slicing: Slicing) -> None:
    beats = slicing.heartbeats()
    beats.topic("t", 4)
    new = Consumer(beats, "new", "t")
    settle(beats, new)
    stays = ClassicConsumer(beats, "t", session_ms=10 * SESSION_MS)
    for _ in ("it gets an id", "it joins", "it syncs"):
        stays.poll()
    epoch = new.epoch
    new.poll()  # it is told to give up partitions
    beats.fail_next_append()
    with slicing.at_each_step():
        for _ in range(4):
            assert beats.member("new").state is MemberState.UNREVOKED_PARTITIONS
            beats.advance(REBALANCE_MS // 4)
            beats.beat("new", epoch)
        await turns(TURNS)
    beats.beat("new", epoch)
    beats.advance(RETRY_MS)
    await turns(TURNS)
    assert "new" not in beats.groups.group().members


def resolved(beats: Heartbeats) -> set[str] | None:
    """The topics of the expression of the group; None: it is not resolved."""
    for found in beats.group().subscriptions.resolved_regexes.values():
        return set(found.topics)
    return None


async def test_the_topics_of_an_expression_are_written_in_slices(slicing: Slicing) -> None:
    beats = slicing.heartbeats()
    names = {f"t{number}" for number in range(20)}
    for name in names:
        beats.topic(name, 1)
    beats.join("a", regex="t.*")
    with slicing.at_each_step():
        beats.advance()
        await turns(10)
        assert resolved(beats) is None
        beats.topic("t-new", 1)
        await turns(TURNS)
    assert resolved(beats) == names
    assert beats.group().epoch == 2
    # The topic that was created in between is found by the next resolution.
    assert beats.group().topics_checked_offset != beats.groups.topics.last_change_offset
    beats.advance(SESSION_MS // 2)
    beats.beat("a", 1)
    beats.advance()
    assert resolved(beats) == {*names, "t-new"}


async def test_a_resolution_that_cannot_be_written_in_slices_is_started_again(
    slicing: Slicing,
) -> None:
    beats = slicing.heartbeats()
    beats.topic("t", 1)
    beats.join("a", regex="t.*")
    beats.fail_next_append()
    with slicing.at_each_step():
        beats.advance()
        await turns(TURNS)
    assert resolved(beats) is None
    beats.beat("a", 1)
    beats.advance()
    assert resolved(beats) == {"t"}


async def test_a_share_member_of_many_topics_is_removed_at_once_or_in_slices(
    slicing: Slicing, caplog: pytest.LogCaptureFixture
) -> None:
    beats = slicing.heartbeats()
    request = ShareGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="a",
        member_epoch=0,
        subscribed_topic_names=[f"t{number}" for number in range(20)],
    )
    coordinator = beats.groups.coordinator
    for is_long in (False, True):
        coordinator.members.share_group_heartbeat(request, Caller("client", "/127.0.0.1", 1))
        group = coordinator.admin.share_group(GROUP)
        if is_long:
            with slicing.at_each_step():
                beats.advance(SESSION_MS)
                await turns(10)
                assert "a" in group.members
                await turns(TURNS)
        else:
            beats.advance(SESSION_MS)
        assert not group.members
    assert not any(record.levelname == "ERROR" for record in caplog.records)
