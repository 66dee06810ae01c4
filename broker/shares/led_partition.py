"""A share-partition with its log: where it begins, what is read for it, what is stored of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from odradek.config.group_config import BY_DURATION
from odradek.config.iso_duration import duration_ms
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.share_groups.group_configs import ShareGroupConfigs
from odradek.coordinator.share_partitions.acquisition import FetchedBatch
from odradek.coordinator.share_partitions.changes import Changes
from odradek.coordinator.share_partitions.share_partition import (
    InvalidShareStateError,
    Limits,
    SharePartition,
)
from odradek.coordinator.share_state.batches import NO_OFFSET
from odradek.coordinator.share_state.share_coordinator import ShareCoordinator
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.coordinator.share_state.state import StateWrite
from odradek.protocol.batch_header import BatchHeader, CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import read_records
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.storage.batch_scan import scan_headers
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog, RecordsSlice

# By error of the share coordinator: the error that clients get.
# Kafka: SharePartition.fetchPersisterError.
STATE_ERRORS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
# After these errors of clients the stored state is read again: it has a new life, or its group or
# topic is gone. A missing state is not among them (INVALID_REQUEST of the share coordinator).
# Kafka: SharePartitionManager.fencedSharePartitionHandler.
STALE_STATE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
EARLIEST, LATEST = "earliest", "latest"


class NoStateError(ApiError):
    """There is no stored state of a share-partition."""


def state_error(error: ApiError) -> ApiError:
    """Convert an error of the share coordinator to the one that clients get."""
    return ApiError(STATE_ERRORS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), error.message)


class Fetched(NamedTuple):
    """The headers of batches that were read. `error`: why there is not one more of them."""

    batches: Sequence[FetchedBatch] = ()
    error: ApiError | None = None


class LedPartition:
    """One share-partition. `waiting` is called when records have become available again."""

    def __init__(
        self,
        key: SharePartitionKey,
        log: PartitionLog,
        states: ShareCoordinator,
        configs: ShareGroupConfigs,
        now_ms: int,
        step: Step = no_step,
    ) -> None:
        """Read the stored state; `now_ms` is wall-clock time. It may change in a step.

        Raises NoStateError; ApiError: errors of the share coordinator, OFFSET_NOT_AVAILABLE; and
        WouldWaitError inside an attempt (cold_reads.py), because the start offset may be looked up
        by time.
        """
        self.key = key
        self.log = log
        self.leader_epoch = log.leader_epoch
        self.waiting: set[Callable[[LedPartition], None]] = set()
        self._states = states
        self._configs = configs
        try:
            state = states.read(key, self.leader_epoch, now_ms)
        except ApiError as error:
            if error.code is ErrorCode.INVALID_REQUEST:
                raise NoStateError(ErrorCode.UNKNOWN_SERVER_ERROR, error.message) from error
            raise state_error(error) from error
        self._stored = states.read_summary(key)  # with the leader's epoch
        start = state.start_offset
        if start == NO_OFFSET:
            start = start_offset(log, configs.offset_reset(key.group_id), now_ms)
        try:
            self.partition = SharePartition(state, start, step)
        except InvalidShareStateError as error:
            text = f"the stored state of {key.text} is not valid: {error}"
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from error

    @property
    def is_as_stored(self) -> bool:
        """Whether the stored state is still that which was read. Raises ApiError."""
        try:
            return self._states.read_summary(self.key) is self._stored
        except ApiError as error:
            raise state_error(error) from error

    @property
    def max_delivery_count(self) -> int:
        """How often a record is delivered."""
        return self._configs.delivery_count_limit(self.key.group_id)

    def limits(self) -> Limits:
        """The group's limits, which apply to the next acquisition."""
        group_id = self.key.group_id
        return Limits(self.max_delivery_count, self._configs.max_record_locks(group_id))

    def store(
        self,
        changes: Changes,
        now_ms: int,
        step: Step = no_step,
        is_current: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Store decided changes, unless they are not current any more after a step.

        Returns whether they are stored. Raises ApiError; then nothing is.
        """
        if not changes.batches:
            return True
        write = StateWrite(
            state_epoch=self.partition.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=self.partition.start_offset,
            delivery_complete_count=changes.complete_count,
            batches=tuple(changes.batches),
        )
        try:
            return self._states.write(self.key, write, now_ms, step, is_current)
        except ApiError as error:
            raise state_error(error) from error

    def notify(self) -> None:
        """Wake the fetches that wait: records are available again."""
        for wake in tuple(self.waiting):
            wake(self)


def start_offset(log: PartitionLog, reset: str, now_ms: int) -> int:
    """Return where a group begins that has no start offset. Raises ApiError OFFSET_NOT_AVAILABLE.

    `reset` is the setting share.auto.offset.reset.
    """
    log.check_online()
    if reset == EARLIEST:
        return log.log_start_offset
    if reset == LATEST:
        return log.high_watermark
    timestamp_ms = now_ms - duration_ms(reset.removeprefix(BY_DURATION))
    found = log.offset_for_timestamp(timestamp_ms)
    if found is None or found.offset >= log.high_watermark:
        text = f"{log.name} has no record since {timestamp_ms}"
        raise ApiError(ErrorCode.OFFSET_NOT_AVAILABLE, text)
    return found.offset


def fetched_batches(
    files: Files,
    log: PartitionLog,
    records: RecordsSlice,
    *,
    last_needed_offset: int,
    limit: int,
    finds_aborted: bool,
    step: Step = no_step,
) -> Fetched:
    """Read the headers of the batches in a slice that begin up to an offset, at most `limit`.

    A damaged header ends them with the error CORRUPT_MESSAGE. `finds_aborted`: whether markers of
    aborted transactions are looked for.
    Raises ApiError KAFKA_STORAGE_ERROR; and WouldWaitError inside an attempt.
    """
    found: list[FetchedBatch] = []
    end = records.position + records.size_bytes
    headers = scan_headers(files, records.file, records.position, end)
    try:
        for position, header in stepping(islice(headers, limit), step):
            if found and header.base_offset > last_needed_offset:
                break
            is_marker = (
                finds_aborted
                and header.is_control
                and _is_abort_marker(files, records, position, header)
            )
            found.append(
                FetchedBatch(
                    base_offset=header.base_offset,
                    last_offset=header.next_offset - 1,
                    size_bytes=header.size_bytes,
                    producer_id=header.producer_id,
                    is_transactional=header.is_transactional,
                    is_abort_marker=is_marker,
                )
            )
    except OSError as error:
        raise log.failed("read", error) from error
    except (CorruptRecordError, EOFError) as error:
        return Fetched(found, ApiError(ErrorCode.CORRUPT_MESSAGE, f"{log.name}: {error}"))
    return Fetched(found)


def _is_abort_marker(
    files: Files, records: RecordsSlice, position: int, header: BatchHeader
) -> bool:
    if not header.record_count:
        return False
    data = memoryview(files.pread_exact(records.file, header.size_bytes, position))
    return control_type(next(read_records(data, header=header)).key) is ControlRecordType.ABORT


def cut_to(
    records: RecordsSlice, fetched: Sequence[FetchedBatch], first_offset: int, last_offset: int
) -> RecordsSlice:
    """Cut a slice to the batches that have these offsets. `fetched` are its first batches.

    There is at least one, also if compaction has removed all of these offsets: a share session
    omits a partition without bytes, and the member would not know what it has acquired. As in
    Kafka, it is the last batch that begins before the offsets, if there is one.
    Kafka: ShareFetchUtils.maybeSliceFetchRecords.
    """
    position, size = records.position, 0
    for batch in fetched:
        if batch.base_offset <= first_offset:
            position += size
            size = batch.size_bytes
        elif batch.base_offset <= last_offset or not size:
            size += batch.size_bytes
        else:
            break
    return RecordsSlice(records.file, position, size)
