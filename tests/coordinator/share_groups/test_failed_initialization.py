"""States that cannot be created, and topics and groups that are deleted while some are created."""

import pytest

from odradek.coordinator.groups.share_group_service import STATES_PER_TURN
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.groups import GROUP
from tests.support.share_members import RETRY_MS, ShareMembers

REFUSED = ("orders", 2)
OTHERS = {("orders", 0), ("orders", 1)}


@pytest.fixture
def share() -> ShareMembers:
    """A group with a past: a later one of its name begins at a lower epoch."""
    share = ShareMembers(orders=3, payments=2, earlier=1)
    for _ in range(3):
        share.join("m", "earlier")
        share.leave("m")
    share.groups.advance(0)
    share.delete_topic("earlier")
    share.groups.advance(0)
    return share


def test_a_topic_is_initialized_without_one_whose_state_is_refused(share: ShareMembers) -> None:
    share.states.refused = {REFUSED}
    share.join("m", "orders", "payments")
    share.settle()
    assert share.assigned() == {("payments", 0), ("payments", 1)}
    share.states.refused.clear()
    share.groups.advance(RETRY_MS)
    share.settle()
    assert OTHERS | {REFUSED} < share.assigned()
    assert set(share.starts().values()) == {-1}


def test_a_topic_without_any_state_is_tried_again_at_once(share: ShareMembers) -> None:
    share.states.refused = {("orders", partition) for partition in range(3)}
    share.join("m", "orders")
    share.groups.advance(0)
    share.states.refused.clear()
    share.settle(2)
    assert share.assigned() == OTHERS | {REFUSED}


def test_the_states_of_a_topic_that_is_not_initialized_are_deleted_with_the_group(
    share: ShareMembers,
) -> None:
    share.states.refused = {REFUSED}
    share.join("m", "orders")
    share.groups.advance(RETRY_MS)
    share.states.refused |= OTHERS
    share.settle()
    share.leave("m")
    share.states.refused.clear()
    assert share.delete_group() is ErrorCode.NONE
    assert not share.starts()
    share.join("m", "orders")
    share.settle()
    assert share.assigned() == OTHERS | {REFUSED}


def test_a_topic_that_is_deleted_does_not_delay_the_others(share: ShareMembers) -> None:
    share.topic("wide", STATES_PER_TURN)
    share.join("m", "wide", "payments")
    share.groups.loop.turn()
    share.delete_topic("wide")
    share.settle(2)
    assert share.assigned() == {("payments", 0), ("payments", 1)}


@pytest.mark.parametrize("lost", [{1}, {0, 1, 2}])
def test_a_state_that_is_lost_is_created_again(share: ShareMembers, lost: set[int]) -> None:
    share.join("m", "orders")
    share.settle()
    service = share.groups.coordinator.share_groups
    for key in [key for key in share.states.kept if key.partition in lost]:
        del share.states.kept[key]
        assert service.create_lost_state(key)
    share.settle()
    starts = {("orders", partition): 0 if partition in lost else -1 for partition in range(3)}
    assert share.starts() == starts, "it is not known what was accepted"
    assert share.assigned() == OTHERS | {REFUSED}
    other = share.metadata.state.topics["payments"].id
    assert not service.create_lost_state(SharePartitionKey(GROUP, other, 0))
    assert not service.create_lost_state(SharePartitionKey("no group", other, 0))


# -- start offsets


@pytest.mark.parametrize("is_repeated", [False, True])
def test_start_offsets_that_are_confirmed_stay_beside_one_that_fails(
    share: ShareMembers, is_repeated: bool
) -> None:
    share.states.refused = {REFUSED}
    offline = ErrorCode.NOT_COORDINATOR
    altered = share.alter(orders={0: 5, 1: 6, 2: 7}, payments={0: 8})
    assert altered == {"orders": [0, 0, offline], "payments": [0]}
    share.states.refused.clear()
    if is_repeated:
        assert share.alter(orders={2: 7}) == {"orders": [0]}
    share.join("m", "orders", "payments")
    share.groups.advance(RETRY_MS)
    share.settle()
    failed = 7 if is_repeated else 0
    assert share.starts() == {
        ("orders", 0): 5,
        ("orders", 1): 6,
        ("orders", 2): failed,
        ("payments", 0): 8,
        ("payments", 1): 0,
    }


@pytest.mark.parametrize("is_used_again", [False, True])
@pytest.mark.parametrize("at_state", range(5))
def test_no_state_stays_of_a_group_that_is_deleted_while_start_offsets_are_set(
    share: ShareMembers, at_state: int, is_used_again: bool
) -> None:
    is_deleted = False

    def step() -> None:
        nonlocal is_deleted
        if is_deleted or len(share.starts()) < at_state:
            return
        if share.group.state_partitions.initializing:
            is_deleted = True
            assert share.delete_group() is ErrorCode.NONE
            if is_used_again:
                share.join("m", "orders", "payments")

    wanted = {"orders": {0: 5, 1: 6, 2: 7}, "payments": {0: 8, 1: 9}}
    if is_used_again:
        share.alter(step, **wanted)
    else:
        with pytest.raises(ApiError, match="GROUP_ID_NOT_FOUND"):
            share.alter(step, **wanted)
        assert not share.starts()
        share.join("m", "orders", "payments")
    assert is_deleted
    share.settle()
    assert share.assigned() > OTHERS
    assert set(share.starts().values()) == {-1}


def test_a_topic_that_is_deleted_while_start_offsets_are_set_is_forgotten(
    share: ShareMembers,
) -> None:
    def step() -> None:
        if len(share.starts()) == 4 and "orders" in share.metadata.state.topics:
            share.delete_topic("orders")

    altered = share.alter(step, orders={0: 5, 1: 6, 2: 7}, payments={0: 8, 1: 9})
    assert altered["payments"] == [0, 0]
    state = share.group.state_partitions
    assert state.topic_ids() == {share.metadata.state.topics["payments"].id}


@pytest.mark.parametrize("way", ["alter", "join", "join in vain"])
def test_a_topic_whose_deletion_was_not_completed_is_deleted_with_the_group(
    share: ShareMembers, way: str
) -> None:
    share.alter(orders={0: 5, 2: 7})
    share.states.refused = {REFUSED}
    assert share.delete_group() is ErrorCode.NOT_COORDINATOR
    if way == "alter":
        assert share.alter(orders={1: 6}) == {"orders": [0]}
    else:
        if way == "join in vain":
            share.states.refused |= OTHERS
        share.join("m", "orders")
        share.groups.advance(0)
        share.leave("m")
    share.states.refused.clear()
    assert share.delete_group() is ErrorCode.NONE
    assert not share.starts()
