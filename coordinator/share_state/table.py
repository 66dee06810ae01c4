"""The share-partitions of one partition of `__share_group_state`, built by replaying its records.

Each share-partition is fenced by two epochs. The state epoch is the group's, when the state was
initialized: a leader that writes with an older one has an older life of the state. The leader epoch
is the partition's: an older leader may no longer write.

Pruning: an update changes what is in the snapshot before it, so the log is needed from the oldest
of the newest snapshots on. All before it is redundant.

Kafka: ShareCoordinatorShard, ShareCoordinatorOffsetsManager.
"""

from collections.abc import Callable, Collection

from msgspec.structs import replace

from odradek.coordinator.runtime.outcome import JournalRecord, Outcome, ReplayContext
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.share_group_state import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

from .batches import NO_OFFSET, with_new
from .share_partition_key import SharePartitionKey
from .state import (
    UNKNOWN_COUNT,
    ShareState,
    StateWrite,
    of_snapshot,
    snapshot_record,
    tombstone,
    update_record,
    updated,
)

# Returns the number of partitions of a topic; -1 if there is no topic of this id.
PartitionCount = Callable[[bytes], int]


class ShareStateTable:
    """States by share-partition. Only `replay` changes them."""

    def __init__(self, partition_count: PartitionCount, updates_per_snapshot: int) -> None:
        self.states: dict[SharePartitionKey, ShareState] = {}
        self._partition_count = partition_count
        self._updates_per_snapshot = updates_per_snapshot
        self._leader_epochs: dict[SharePartitionKey, int] = {}  # the highest that was written
        self._state_epochs: dict[SharePartitionKey, int] = {}  # likewise
        self._update_counts: dict[SharePartitionKey, int] = {}
        self._snapshot_offsets: dict[SharePartitionKey, int] = {}
        self._last_deletion: int | None = None  # its offset, if it is the newest of snapshots

    # -- replay ------------------------------------------------------------------------------------

    def replay(self, record: JournalRecord, context: ReplayContext) -> None:
        """Apply one record of the log."""
        named = record.key
        assert isinstance(named, ShareSnapshotKey | ShareUpdateKey)
        key = SharePartitionKey(named.group_id, named.topic_id, named.partition)
        if isinstance(named, ShareSnapshotKey):
            self._replay_snapshot(key, record.value, context.offset)
        elif record.value is not None:
            self._replay_update(key, record.value)

    def _replay_snapshot(
        self, key: SharePartitionKey, value: ShareSnapshotValue | None, offset: int
    ) -> None:
        if value is None:
            for of_key in (
                self.states,
                self._leader_epochs,
                self._state_epochs,
                self._update_counts,
                self._snapshot_offsets,
            ):
                of_key.pop(key, None)
            self._last_deletion = offset
            return
        self._raise_epoch(self._leader_epochs, key, value.leader_epoch)
        self._raise_epoch(self._state_epochs, key, value.state_epoch)
        self.states[key] = of_snapshot(value)
        # As in Kafka, a snapshot for another reason does not begin the count again.
        if self._update_counts.get(key, 0) >= self._updates_per_snapshot:
            self._update_counts[key] = 0
        self._snapshot_offsets[key] = offset
        self._last_deletion = None

    def _replay_update(self, key: SharePartitionKey, value: ShareUpdateValue) -> None:
        self._raise_epoch(self._leader_epochs, key, value.leader_epoch)
        self.states[key] = updated(self.states.get(key), value)
        self._update_counts[key] = self._update_counts.get(key, 0) + 1

    @staticmethod
    def _raise_epoch(epochs: dict[SharePartitionKey, int], key: SharePartitionKey, to: int) -> None:
        epochs[key] = max(epochs.get(key, to), to)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Ignore a marker: `__share_group_state` has no transactional records."""

    # -- decisions ---------------------------------------------------------------------------------

    def initialize(
        self, key: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> Outcome[None]:
        """Create the state of a share-partition, or begin a new life of it.

        Raises ApiError: INVALID_REQUEST, FENCED_STATE_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        _check_partition(key)
        _check_not_negative("state epoch", state_epoch)
        self._check_epoch(self._state_epochs, key, state_epoch, ErrorCode.FENCED_STATE_EPOCH)
        self._check_topic(key)
        known = self.states.get(key)
        state = ShareState(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=state_epoch,
            start_offset=start_offset,
            delivery_complete_count=UNKNOWN_COUNT if start_offset == NO_OFFSET else 0,
            created_ms=now_ms,
            written_ms=now_ms,
        )
        return Outcome(reply=None, records=(snapshot_record(key, state),))

    def read(self, key: SharePartitionKey, leader_epoch: int, now_ms: int) -> Outcome[ShareState]:
        """Return the state; a new leader epoch is written, so that older leaders are fenced.

        Raises ApiError: INVALID_REQUEST, FENCED_LEADER_EPOCH, UNKNOWN_TOPIC_OR_PARTITION.
        """
        state = self._initialized(key)
        _check_not_negative("leader epoch", leader_epoch)
        highest = self._leader_epochs.get(key)
        if highest is not None and highest > leader_epoch:
            raise _fenced(ErrorCode.FENCED_LEADER_EPOCH, key, leader_epoch, highest)
        self._check_topic(key)
        if leader_epoch == highest:
            return Outcome(reply=state)
        write = StateWrite(
            state_epoch=state.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )
        record = self._written(key, state, write, leader_epoch, now_ms)
        return Outcome(reply=state, records=(record,))

    def write(self, key: SharePartitionKey, write: StateWrite, now_ms: int) -> Outcome[None]:
        """Store what has changed.

        Raises ApiError: INVALID_REQUEST, FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH,
        UNKNOWN_TOPIC_OR_PARTITION.
        """
        state = self._initialized(key)
        _check_not_negative("leader epoch", write.leader_epoch)
        _check_not_negative("state epoch", write.state_epoch)
        self._check_epoch(
            self._leader_epochs, key, write.leader_epoch, ErrorCode.FENCED_LEADER_EPOCH
        )
        self._check_epoch(self._state_epochs, key, write.state_epoch, ErrorCode.FENCED_STATE_EPOCH)
        self._check_topic(key)
        _check_batches(key, write)
        record = self._written(key, state, _raised(state, write), state.leader_epoch, now_ms)
        return Outcome(reply=None, records=(record,))

    def delete(self, key: SharePartitionKey) -> Outcome[None]:
        """Delete the state, if there is one. Raises ApiError as `summary`."""
        _check_partition(key)
        self._check_topic(key)
        records = (tombstone(key),) if key in self.states else ()
        return Outcome(reply=None, records=records)

    def summary(self, key: SharePartitionKey) -> ShareState:
        """Return the state, or an empty one if there is none.

        Raises ApiError: INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION.
        """
        _check_partition(key)
        self._check_topic(key)
        return self.states.get(key) or ShareState()

    def _written(
        self,
        key: SharePartitionKey,
        state: ShareState,
        write: StateWrite,
        leader_epoch: int,
        now_ms: int,
    ) -> JournalRecord:
        """Make an update, or a snapshot if there are many updates already."""
        if self._update_counts.get(key, 0) < self._updates_per_snapshot:
            return update_record(key, state, write, leader_epoch)
        snapshot = ShareState(
            snapshot_epoch=state.snapshot_epoch + 1,
            state_epoch=state.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            batches=with_new(state.batches, write.batches, write.start_offset),
            created_ms=now_ms,
            written_ms=now_ms,
        )
        return snapshot_record(key, snapshot)

    # -- the log -----------------------------------------------------------------------------------

    def tombstone_if_of(
        self, key: SharePartitionKey, topic_ids: Collection[bytes]
    ) -> JournalRecord | None:
        """Return the tombstone of a state if its topic is one of those, which are deleted."""
        return tombstone(key) if key.topic_id in topic_ids and key in self.states else None

    @property
    def are_all_cold(self) -> bool:
        """Whether the newest snapshots of all states are cold ones: nothing is gained by others.

        A cold snapshot keeps the time at which the state was created.
        """
        return all(state.created_ms != state.written_ms for state in self.states.values())

    def cold_snapshot(
        self, key: SharePartitionKey, now_ms: int, interval_ms: int
    ) -> JournalRecord | None:
        """Return a snapshot of a state if it was not written for `interval_ms`.

        With it the log can be pruned further.
        """
        state = self.states.get(key)
        if state is None or now_ms - state.written_ms < interval_ms:
            return None
        epoch = state.snapshot_epoch + 1
        return snapshot_record(key, replace(state, snapshot_epoch=epoch, written_ms=now_ms))

    @property
    def redundant_before(self) -> int:
        """The offset before which no record counts any more; 0 if there is none."""
        offsets = list(self._snapshot_offsets.values())
        if self._last_deletion is not None:
            offsets.append(self._last_deletion)
        return min(offsets, default=0)

    # -- checks ------------------------------------------------------------------------------------

    def _initialized(self, key: SharePartitionKey) -> ShareState:
        _check_partition(key)
        state = self.states.get(key)
        if state is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no state of {key.text}")
        return state

    @staticmethod
    def _check_epoch(
        epochs: dict[SharePartitionKey, int], key: SharePartitionKey, epoch: int, code: ErrorCode
    ) -> None:
        highest = epochs.get(key, epoch)
        if highest > epoch:
            raise _fenced(code, key, epoch, highest)

    def _check_topic(self, key: SharePartitionKey) -> None:
        if key.partition >= self._partition_count(key.topic_id):
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"the partition of {key.text} does not exist"
            )


def _check_not_negative(name: str, epoch: int) -> None:
    if epoch < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"The {name} cannot be a negative number.")


def _raised(state: ShareState, write: StateWrite) -> StateWrite:
    """The write with a start offset, and a count of deliveries, that do not go back."""
    start, count = write.start_offset, write.delivery_complete_count
    if start == state.start_offset:
        count = max(count, state.delivery_complete_count)
    elif start < state.start_offset:
        start, count = state.start_offset, state.delivery_complete_count
    return replace(write, start_offset=start, delivery_complete_count=count)


def _check_partition(key: SharePartitionKey) -> None:
    if key.partition < 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{key.partition} is not a partition")


def _check_batches(key: SharePartitionKey, write: StateWrite) -> None:
    for batch in write.batches:
        if batch.last_offset < batch.first_offset:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"a batch of {key.text} begins at {batch.first_offset}"
                f" and ends at {batch.last_offset}",
            )


def _fenced(code: ErrorCode, key: SharePartitionKey, epoch: int, highest: int) -> ApiError:
    return ApiError(code, f"{key.text} has epoch {highest}, the request has {epoch}")
