"""The state of a share-partition as it is made of a snapshot and the updates after it."""

from odradek.coordinator.share_state.batches import NO_OFFSET, DeliveryBatch
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.coordinator.share_state.state import (
    NO_EPOCH,
    UNKNOWN_COUNT,
    ShareState,
    of_snapshot,
    snapshot_record,
    updated,
)
from odradek.protocol.records.share_group_state import ShareUpdateValue, StateBatch

STATE = ShareState(
    snapshot_epoch=3,
    state_epoch=2,
    leader_epoch=5,
    start_offset=10,
    delivery_complete_count=4,
    batches=(DeliveryBatch(10, 19, 1, 0),),
    created_ms=7,
    written_ms=8,
)
LATER = StateBatch(first_offset=20, last_offset=29, delivery_state=2, delivery_count=3)


def update(
    leader_epoch: int = NO_EPOCH,
    start_offset: int = NO_OFFSET,
    state_batches: tuple[StateBatch, ...] = (),
) -> ShareUpdateValue:
    return ShareUpdateValue(
        snapshot_epoch=3,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=6,
        state_batches=list(state_batches),
    )


def test_a_snapshot_keeps_every_field() -> None:
    record = snapshot_record(SharePartitionKey("g", bytes(16), 0), STATE)
    assert of_snapshot(record.value) == STATE


def test_an_update_changes_the_leader_epoch_only_if_it_has_one() -> None:
    assert updated(STATE, update()).leader_epoch == 5
    assert updated(STATE, update(leader_epoch=6)).leader_epoch == 6


def test_an_update_moves_the_start_offset_only_if_it_has_one() -> None:
    unmoved = updated(STATE, update(state_batches=(LATER,)))
    assert unmoved.start_offset == 10
    assert unmoved.batches == (DeliveryBatch(10, 19, 1, 0), DeliveryBatch(20, 29, 3, 2))
    moved = updated(STATE, update(start_offset=15, state_batches=(LATER,)))
    assert moved.start_offset == 15
    assert moved.batches == (DeliveryBatch(15, 19, 1, 0), DeliveryBatch(20, 29, 3, 2))


def test_an_update_keeps_what_only_a_snapshot_has() -> None:
    state = updated(STATE, update())
    assert (state.snapshot_epoch, state.state_epoch) == (3, 2)
    assert (state.created_ms, state.written_ms) == (7, 8)
    assert state.delivery_complete_count == 6


def test_an_update_without_a_snapshot_before_it_is_the_state() -> None:
    state = updated(None, update(leader_epoch=6, start_offset=20, state_batches=(LATER,)))
    assert (state.leader_epoch, state.start_offset, state.delivery_complete_count) == (6, 20, 6)
    assert state.batches == (DeliveryBatch(20, 29, 3, 2),)
    assert (state.snapshot_epoch, state.state_epoch) == (3, 0)


def test_what_is_done_is_known_once_an_offset_and_a_count_are_stored() -> None:
    assert STATE.done_count == 14
    assert ShareState(start_offset=0, delivery_complete_count=0).done_count == 0
    assert ShareState(start_offset=10, delivery_complete_count=UNKNOWN_COUNT).done_count is None
    assert ShareState(start_offset=NO_OFFSET, delivery_complete_count=4).done_count is None
