"""Every state of a classic group, and what it answers to every call."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from odradek.coordinator.classic_groups.group import LEGAL, ClassicGroup, ClassicState
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupResponse
from tests.support.group_states import (
    CALLS,
    FULL_AT,
    PARKED,
    STATES,
    Cell,
    Codes,
    answers_of_a_full_group,
    cells,
    stable,
)
from tests.support.groups import GROUP, Groups, Waiting


@dataclass
class Sent:
    """A request to a coordinator in memory: a response, a Waiting, or an error code."""

    answer: Any

    def code(self, _expected: Codes) -> Codes:
        answer = self.answer.response if isinstance(self.answer, Waiting) else self.answer
        if answer is None:
            return PARKED
        if isinstance(answer, LeaveGroupResponse) and not answer.error_code:
            answer = answer.members[0]
        return answer if isinstance(answer, ErrorCode) else ErrorCode(answer.error_code)

    def joined(self) -> JoinGroupResponse:
        answer: JoinGroupResponse = (
            self.answer.response if isinstance(self.answer, Waiting) else self.answer
        )
        return answer


class MemoryStage:
    """A group in memory."""

    def __init__(self, **settings: int) -> None:
        self.groups = Groups(**settings)

    def join(self, member_id: str = "", **words: Any) -> Sent:
        return Sent(self.groups.send_join(member_id, **words))

    def sync(
        self,
        member_id: str,
        generation: int,
        *,
        instance: str | None = None,
        protocol: tuple[str, str] = ("consumer", "range"),
        assignments: Mapping[str, bytes] | None = None,
    ) -> Sent:
        words = {"protocol_type": protocol[0], "protocol_name": protocol[1]}
        send = self.groups.send_sync
        return Sent(send(member_id, generation, assignments, instance=instance, **words))

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None) -> Sent:
        return Sent(self.groups.heartbeat(member_id, generation, instance=instance))

    def leave(self, member_id: str, instance: str | None = None) -> Sent:
        who = LeaveGroupMemberIdentity(member_id=member_id, group_instance_id=instance)
        return Sent(self.groups.coordinator.members.leave_group(GROUP, [who]))

    def commit(
        self, member_id: str = "", generation: int = -1, instance: str | None = None
    ) -> Sent:
        words: dict[str, Any] = {"generation_id": generation, "instance": instance}
        try:
            return Sent(self.groups.commit(5, member_id=member_id, **words))
        except ApiError as error:
            return Sent(error.code)

    def delete(self) -> Sent:
        return Sent(self.groups.coordinator.admin.delete([GROUP])[0])

    def wait_for_members(self, count: int) -> None:
        assert len(self.groups.group().members) == count


@pytest.mark.parametrize("cell", list(cells()), ids=lambda cell: f"{cell.state}: {cell.call}")
def test_each_state_answers_each_call_as_kafka_does(cell: Cell) -> None:
    stage = MemoryStage()
    members = STATES[cell.state](stage)
    assert CALLS[cell.call](stage, members).code(cell.expected) == cell.expected


@pytest.mark.parametrize("call", CALLS)
def test_a_dead_group_sends_everybody_to_look_for_another_coordinator(call: str) -> None:
    """A group dies when it is removed, so nobody meets it; Kafka is as careful."""
    stage = MemoryStage()
    members = stable(stage)
    stage.groups.group().become_dead()
    expected = ErrorCode.COORDINATOR_NOT_AVAILABLE
    if call == "delete":
        expected = ErrorCode.GROUP_ID_NOT_FOUND
    assert CALLS[call](stage, members).code(expected) == expected


def test_a_full_group_answers_as_kafka_does() -> None:
    for what, expected, found in answers_of_a_full_group(MemoryStage(max_size=FULL_AT)):
        assert found == expected, what


def test_the_leader_that_joins_a_stable_group_again_starts_a_rebalance() -> None:
    groups = Groups()
    leader, _ = groups.stable_group(2)
    assert isinstance(groups.send_join(leader), Waiting)
    assert groups.group().state is ClassicState.PREPARING_REBALANCE


def test_the_leader_that_missed_its_join_response_gets_it_again_with_the_members() -> None:
    groups = Groups()
    leader = groups.join().member_id
    again = groups.join(leader)
    assert again.generation_id == 1
    assert [member.member_id for member in again.members] == [leader]


def test_an_unchanged_follower_that_joins_again_is_told_the_generation_and_nobodys_names() -> None:
    groups = Groups()
    leader, follower = groups.stable_group(2)
    assert groups.join(follower) == JoinGroupResponse(
        generation_id=2,
        protocol_type="consumer",
        protocol_name="range",
        leader=leader,
        member_id=follower,
    )


def test_a_state_is_never_left_by_a_way_that_the_table_does_not_know() -> None:
    group = ClassicGroup("g")
    with pytest.raises(AssertionError, match="cannot go from Empty to CompletingRebalance"):
        group._become(ClassicState.COMPLETING_REBALANCE, 0)


def test_every_state_but_the_last_can_be_left_and_death_is_always_near() -> None:
    for state, following in LEGAL.items():
        assert (ClassicState.DEAD in following) == (state is not ClassicState.DEAD)


@pytest.mark.parametrize("state", ClassicState)
def test_a_rebalance_may_begin_where_the_table_knows_a_way(state: ClassicState) -> None:
    group = ClassicGroup("g")
    group.state = state
    assert group.can_rebalance == (ClassicState.PREPARING_REBALANCE in LEGAL[state])
