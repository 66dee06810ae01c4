"""The stored state of one share-partition. Kafka: ShareGroupOffset, ShareCoordinatorShard.merge."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from odradek.coordinator.runtime.outcome import JournalRecord
from odradek.protocol.records.share_group_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatch,
)

from .batches import NO_OFFSET, DeliveryBatch, combined, with_new
from .share_partition_key import SharePartitionKey

NO_EPOCH = -1
UNKNOWN_COUNT = -1


class ShareState(Struct, frozen=True, kw_only=True):
    """How far a share group has got in a partition. Immutable.

    `start_offset`: all records before it are done; NO_OFFSET: not decided yet. `batches` has the
    deliveries from there on. `delivery_complete_count`: how many records from there on are done.
    """

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = NO_OFFSET
    delivery_complete_count: int = UNKNOWN_COUNT
    batches: tuple[DeliveryBatch, ...] = ()
    created_ms: int = 0
    written_ms: int = 0

    @property
    def done_count(self) -> int | None:
        """How many offsets are done, counted from offset 0; None: not stored yet."""
        if self.start_offset == NO_OFFSET or self.delivery_complete_count < 0:
            return None
        return self.start_offset + self.delivery_complete_count


class StateWrite(Struct, frozen=True, kw_only=True):
    """What a partition's leader writes: NO_OFFSET: the start offset is unchanged."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[DeliveryBatch, ...] = ()


# -- from records ----------------------------------------------------------------------------------

# `with_new` needs stored batches in order and without overlaps. The records may be Kafka's, so this
# is not taken for granted: `combined((), …)` puts the first batches of a state in order.


def of_snapshot(value: ShareSnapshotValue) -> ShareState:
    return ShareState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=combined((), _batches(value.state_batches), NO_OFFSET),
        created_ms=value.create_timestamp,
        written_ms=value.write_timestamp,
    )


def updated(state: ShareState | None, value: ShareUpdateValue) -> ShareState:
    """Return the state after an update; without a snapshot before it, what the update has."""
    if state is None:
        return ShareState(
            snapshot_epoch=value.snapshot_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            delivery_complete_count=value.delivery_complete_count,
            batches=combined((), _batches(value.state_batches), NO_OFFSET),
        )
    start = state.start_offset if value.start_offset == NO_OFFSET else value.start_offset
    return replace(
        state,
        leader_epoch=(state.leader_epoch if value.leader_epoch == NO_EPOCH else value.leader_epoch),
        start_offset=start,
        delivery_complete_count=value.delivery_complete_count,
        batches=with_new(state.batches, _batches(value.state_batches), start),
    )


def _batches(stored: Sequence[StateBatch]) -> tuple[DeliveryBatch, ...]:
    return tuple(
        DeliveryBatch(
            batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state
        )
        for batch in stored
    )


# -- to records ------------------------------------------------------------------------------------


def snapshot_record(key: SharePartitionKey, state: ShareState) -> JournalRecord:
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=_stored(state.batches),
    )
    return JournalRecord(value, key=_snapshot_key(key))


def update_record(
    key: SharePartitionKey, state: ShareState, write: StateWrite, leader_epoch: int
) -> JournalRecord:
    """Make an update with `leader_epoch`, not that of `write`.

    A write keeps the state's leader epoch. Only a read by a newer leader raises it (table.py).
    """
    value = ShareUpdateValue(
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=leader_epoch,
        start_offset=write.start_offset,
        delivery_complete_count=write.delivery_complete_count,
        state_batches=_stored(combined((), write.batches, write.start_offset)),
    )
    of_update = ShareUpdateKey(
        group_id=key.group_id, topic_id=key.topic_id, partition=key.partition
    )
    return JournalRecord(value, key=of_update)


def tombstone(key: SharePartitionKey) -> JournalRecord:
    return JournalRecord(None, key=_snapshot_key(key))


def _snapshot_key(key: SharePartitionKey) -> ShareSnapshotKey:
    return ShareSnapshotKey(group_id=key.group_id, topic_id=key.topic_id, partition=key.partition)


def _stored(batches: Iterable[DeliveryBatch]) -> list[StateBatch]:
    return [
        StateBatch(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            delivery_state=batch.delivery_state,
            delivery_count=batch.delivery_count,
        )
        for batch in batches
    ]
