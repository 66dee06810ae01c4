"""The return of a static member to a group of thousands of members is decided in slices."""

import asyncio
from typing import Any

import pytest

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.classic_groups.group import ClassicState
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.support.both_lives import assert_log_agrees
from tests.support.groups import GROUP, REBALANCE_MS, SESSION_MS, Groups, subscription
from tests.support.stretches import MeasuredSlicer, Stretches, assert_gives_way

MEMBERS = 2_000
# A stretch of this length keeps nobody waiting.
LIMIT_MS = 4.0
INSTANCE = "i7"


class Returning:
    """A stable group of static members, one of which comes back."""

    def __init__(self) -> None:
        self.slicer = MeasuredSlicer()
        self.groups = Groups(initial_rebalance_delay_ms=3_000, slicer=self.slicer)
        instances = [f"i{number}" for number in range(MEMBERS)]
        self.ids = [self.groups.parked_join(instance=one)[0] for one in instances]
        self.groups.advance(6_000)
        shares = {member_id: member_id.encode() for member_id in self.ids}
        self.groups.sync(self.ids[0], assignments=shares, instance=instances[0])
        assert self.groups.group().state is ClassicState.STABLE
        self.old_id = self.groups.group().roster.static_member_ids[INSTANCE]

    def come_back(self, *protocols: str) -> Stretches:
        """The join of the member. Its decision goes on in the next turn of the event loop."""
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id="",
            group_instance_id=INSTANCE,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=subscription("topic"))
                for name in protocols or ["range"]
            ],
        )
        self.slicer.stretches = stretches = Stretches()
        caller = Caller("client", "/127.0.0.1", 9)
        self.reply: Any = self.groups.coordinator.members.join_group(request, caller)
        return stretches

    async def answer(self) -> Any:
        """The response to the join."""
        await asyncio.sleep(0)
        self.groups.advance(0)
        return self.reply.response


@pytest.mark.slow
async def test_the_return_of_a_static_member_gives_way() -> None:
    returning = await assert_gives_way(Returning, Returning.come_back, LIMIT_MS)
    answer = await returning.answer()
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
    group = returning.groups.group()
    assert group.state is ClassicState.STABLE
    place = returning.ids.index(returning.old_id)
    returning.ids[place] = answer.member_id
    assert list(group.members) == returning.ids, "it has the place that it had"
    assert group.members[answer.member_id].assignment == returning.old_id.encode()
    assert_log_agrees(returning.groups)


async def test_a_member_that_leaves_meanwhile_has_the_client_join_again() -> None:
    returning = Returning()
    returning.come_back()
    returning.groups.leave(returning.ids[0])
    answer = await returning.answer()
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert returning.old_id in returning.groups.group().members
    assert_log_agrees(returning.groups)


async def test_a_return_that_cannot_be_written_is_refused() -> None:
    returning = Returning()
    returning.groups.logs[0].fail_next = ApiError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    returning.come_back()
    answer = await returning.answer()
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert returning.old_id in returning.groups.group().members
    assert_log_agrees(returning.groups)


async def test_a_return_with_another_protocol_has_the_group_rebalance() -> None:
    returning = Returning()
    group = returning.groups.group()
    for member in group.members.values():  # all would prefer another one, but this member has not
        if member.member_id != returning.old_id:
            group.roster.change_protocols(member, (("sticky", b""), *member.protocols))
    returning.come_back("range", "sticky")
    assert await returning.answer() is None, "it waits for the others"
    assert group.state is ClassicState.PREPARING_REBALANCE
    assert returning.old_id not in group.members
