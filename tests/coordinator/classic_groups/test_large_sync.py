"""The leader's assignment of a group of thousands of members is decided in slices."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from odradek.coordinator.classic_groups.group import ClassicState
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.both_lives import assert_log_agrees
from tests.support.groups import GROUP, REBALANCE_MS, Groups
from tests.support.stretches import MeasuredSlicer, Stretches, assert_gives_way

MEMBERS = 2_000
# A stretch of this length keeps nobody waiting.
LIMIT_MS = 4.0


class Syncing:
    """A group whose members have joined, and all but the leader wait for the assignment."""

    def __init__(self) -> None:
        self.slicer = MeasuredSlicer()
        self.groups = Groups(initial_rebalance_delay_ms=3_000, slicer=self.slicer)
        self.leader, *others = [self.groups.parked_join()[0] for _ in range(MEMBERS)]
        self.groups.advance(6_000)
        assert self.groups.group().state is ClassicState.COMPLETING_REBALANCE
        self.parked = {member_id: self._send(member_id, {}) for member_id in others}

    def assign(self, assignments: Mapping[str, bytes]) -> Stretches:
        """The leader's sync. Its decision goes on in the next turn of the event loop."""
        self.slicer.stretches = stretches = Stretches()
        self.parked[self.leader] = self._send(self.leader, assignments)
        return stretches

    def _send(self, member_id: str, assignments: Mapping[str, bytes]) -> Any:
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.groups.group().generation_id,
            member_id=member_id,
            protocol_type="consumer",
            assignments=[
                SyncGroupRequestAssignment(member_id=name, assignment=assignment)
                for name, assignment in assignments.items()
            ],
        )
        return self.groups.coordinator.members.sync_group(request)

    def answers(self) -> dict[str, Any]:
        self.groups.advance(0)
        return {member_id: reply.response for member_id, reply in self.parked.items()}

    def own_names(self) -> dict[str, bytes]:
        """An assignment for each member."""
        return {member_id: member_id.encode() for member_id in [self.leader, *self.parked]}


@pytest.mark.slow
async def test_the_assignment_of_a_large_group_gives_way() -> None:
    syncing = await assert_gives_way(
        Syncing, lambda syncing: syncing.assign(syncing.own_names()), LIMIT_MS
    )
    found = {member_id: answer.assignment for member_id, answer in syncing.answers().items()}
    assert found == syncing.own_names()
    assert_log_agrees(syncing.groups)


async def test_a_member_that_leaves_meanwhile_makes_the_group_rebalance() -> None:
    syncing = Syncing()
    syncing.assign(syncing.own_names())
    syncing.groups.leave(next(iter(syncing.parked)))
    await asyncio.sleep(0)
    codes = [answer.error_code for answer in syncing.answers().values()]
    assert codes == [ErrorCode.UNKNOWN_MEMBER_ID] + [ErrorCode.REBALANCE_IN_PROGRESS] * (
        MEMBERS - 1
    )
    assert not syncing.groups.group().journaled.members, "no assignment is written"


@pytest.mark.parametrize("size", [1_000_000, None])
async def test_an_assignment_that_cannot_be_written_is_refused(size: int | None) -> None:
    syncing = Syncing()
    if size is None:
        syncing.groups.logs[0].fail_next = ApiError(ErrorCode.MESSAGE_TOO_LARGE, "it is too large")
    syncing.assign(dict.fromkeys(syncing.own_names(), bytes((size or MEMBERS) // MEMBERS)))
    await asyncio.sleep(0)
    codes = {answer.error_code for answer in syncing.answers().values()}
    assert codes == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert syncing.groups.group().state is ClassicState.PREPARING_REBALANCE
    syncing.groups.advance(REBALANCE_MS + 1)
    assert syncing.groups.group().state is ClassicState.EMPTY, "nobody has joined again"
