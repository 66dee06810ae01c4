"""The state of many partitions is created in several turns of the loop."""

from itertools import count

import pytest

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.groups.share_group_service import STATES_PER_TURN
from odradek.coordinator.metadata.topic_creation import NewTopic
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.support.groups import GROUP, Groups, NoShareStates
from tests.support.metadata import Metadata

PARTITIONS = 5 * STATES_PER_TURN


class States(NoShareStates):
    """Notes which states are created. `refused` is a partition whose state cannot be."""

    def __init__(self) -> None:
        self.created: list[int] = []
        self.refused: int | None = None

    def initialize(
        self,
        key: SharePartitionKey,
        state_epoch: int,  # as a share coordinator
        start_offset: int,  # as a share coordinator
        now_ms: int,  # as a share coordinator
    ) -> None:
        if key.partition == self.refused:
            raise ApiError(ErrorCode.NOT_COORDINATOR, "its log is offline")
        self.created.append(key.partition)

    def delete(self, key: SharePartitionKey, now_ms: int) -> None:  # as a share coordinator
        if key.partition in self.created:
            self.created.remove(key.partition)


@pytest.fixture
def states() -> States:
    return States()


@pytest.fixture
def metadata() -> Metadata:
    metadata = Metadata()
    metadata.create(NewTopic(name="wide", partition_count=PARTITIONS))
    return metadata


@pytest.fixture
def groups(metadata: Metadata, states: States) -> Groups:
    """A coordinator, and a member of a share group that has just subscribed to a large topic."""
    groups = Groups(metadata=metadata.state, share_states=states)
    join(groups, GROUP)
    return groups


def join(groups: Groups, group_id: str) -> None:
    request = ShareGroupHeartbeatRequest(
        group_id=group_id, member_id="m", member_epoch=0, subscribed_topic_names=["wide"]
    )
    answer = groups.coordinator.members.share_group_heartbeat(request, Caller("c", "/127.0.0.1", 1))
    assert answer.error_code == ErrorCode.NONE


def leave(groups: Groups) -> None:
    request = ShareGroupHeartbeatRequest(group_id=GROUP, member_id="m", member_epoch=-1)
    answer = groups.coordinator.members.share_group_heartbeat(request, Caller("c", "/127.0.0.1", 1))
    assert answer.error_code == ErrorCode.NONE


def group_of(groups: Groups) -> ShareGroup:
    return groups.coordinator.admin.share_group(GROUP)


def test_a_turn_of_the_loop_creates_some_states(groups: Groups, states: States) -> None:
    for turn in range(1, 6):
        assert not group_of(groups).has_unassigned_partitions(groups.topics)
        groups.loop.turn()
        assert states.created == list(range(turn * STATES_PER_TURN))
    groups.loop.turn()
    assert group_of(groups).has_unassigned_partitions(groups.topics), "their states are there now"


def test_a_turn_creates_states_of_one_group(groups: Groups, states: States) -> None:
    for number in range(9):
        join(groups, f"group-{number}")
    while len(states.created) < 10 * PARTITIONS:
        before = len(states.created)
        groups.loop.turn()
        assert len(states.created) - before <= STATES_PER_TURN
    groups.advance(0)
    assert group_of(groups).has_unassigned_partitions(groups.topics)


def test_no_partition_is_initialized_if_a_state_is_refused(groups: Groups, states: States) -> None:
    states.refused = PARTITIONS - 1
    groups.advance(0)
    assert len(states.created) == PARTITIONS - 1
    assert not group_of(groups).has_unassigned_partitions(groups.topics)


def test_no_state_is_created_for_a_group_that_is_deleted_meanwhile(
    groups: Groups, states: States
) -> None:
    groups.loop.turn()
    del groups.coordinator.shards.of(GROUP).state.groups[GROUP]
    groups.advance(0)
    assert len(states.created) == STATES_PER_TURN


@pytest.mark.parametrize("at_step", range(2, PARTITIONS, 40))
def test_states_that_a_member_gets_while_its_group_is_deleted_stay(
    groups: Groups, states: States, at_step: int
) -> None:
    groups.advance(0)
    leave(groups)
    passed = 0

    def step() -> None:
        nonlocal passed
        passed += 1
        if passed == at_step:
            states.created.clear()  # those that are left are created again
            join(groups, GROUP)
            groups.advance(0)

    [result] = groups.coordinator.admin.delete([GROUP], step)
    assert result.error_code == ErrorCode.NON_EMPTY_GROUP
    assert states.created == list(range(PARTITIONS))
    assert group_of(groups).has_unassigned_partitions(groups.topics)


def test_no_state_is_created_while_its_group_is_deleted(groups: Groups, states: States) -> None:
    groups.loop.turn()
    leave(groups)

    steps = count()

    def step() -> None:
        if next(steps) > PARTITIONS // 2:
            groups.loop.turn()

    groups.coordinator.admin.delete([GROUP], step)
    assert states.created == []


def test_a_turn_forgets_the_deleted_topics_of_one_group(groups: Groups, metadata: Metadata) -> None:
    others = [f"group-{number}" for number in range(5)]
    for group_id in others:
        join(groups, group_id)
    groups.advance(0)
    found = [groups.coordinator.admin.share_group(group_id) for group_id in (GROUP, *others)]

    def with_states() -> int:
        return sum(bool(group.state_partitions.stored()) for group in found)

    assert with_states() == len(found)
    metadata.delete("wide")
    groups.coordinator.share_groups.on_topics_deleted()
    assert with_states() == len(found) - 1
    while before := with_states():
        groups.loop.turn()
        assert with_states() >= before - 1
