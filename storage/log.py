"""PartitionLog: one partition's records, as a list of segments. Kafka: UnifiedLog, LocalLog.

    log start <= last stable <= high watermark <= log end       (offsets)
    recovery point <= high watermark                            (below it everything is synced)

An append first checks the batch, then writes it with one system call, then updates the state in
memory. The steps that can fail come first, so a failed append leaves the log unchanged. A client's
batch is written as it was received, except for its first 16 bytes.

Readers see records below the high watermark. A single node has no followers, so records are visible
as soon as they are written. The exception is an append that reaches flush.messages: its records are
visible once they are synced. The same holds in Kafka, where UnifiedLog.append flushes before
Partition moves the high watermark.

A read returns a slice of a segment's file and reads no records (slices.py).

Everything runs on one thread, except steps whose docstring says otherwise (`FlushPlan.run`,
`SegmentRemoval.run`, `SegmentSwap.sync`). Time is passed in.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import (
    PREFIX,
    PREFIX_BYTES,
    BatchHeader,
    CorruptRecordError,
    batch_prefix,
)
from odradek.protocol.compression import Buffer
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import uuid_text
from odradek.storage.cleaning.segment_swap import (
    SegmentSwap,
    Sliced,
    remove_leftovers,
    stage_cleaned,
)
from odradek.storage.cleaning.task import CleanedSegment
from odradek.storage.disk_errors import is_transient
from odradek.storage.recovering.log_source import LoadedLog, LogSource
from odradek.storage.recovering.producer_recovery import (
    aborted_transaction,
    rebuild_producer_state,
    recall_recent_batches,
)
from odradek.storage.recovering.recovery import load_log

from .append import AppendOrigin, AppendResult, EndMarker
from .append_rules import AppendRules
from .batch_validator import (
    OrdinaryBatch,
    check_client_batch,
    read_coordinator_batch,
    read_ordinary_batch,
)
from .checkpoints import write_topic_id
from .committed_reads import CommittedRead, cut_before, cut_to_committed, readable_bytes
from .filenames import PARTITION_METADATA, FileKind
from .flush_plan import FlushPlan
from .hidden_ends import HiddenEnds
from .marker_batch import marker_batch
from .offset_lookup import find_timestamp, newest_record, offsets_written_before
from .record_walk import WalkedRecords
from .segment import RollLimits, Segment
from .segment_removal import SegmentRemoval, SegmentRemover
from .segment_settings import SegmentSettings
from .shared import shared
from .slices import RecordsSlice, Slicer
from .time_search import OffsetAtTime
from .topic_partition import TopicPartition
from .unsynced_files import UnsyncedFiles

__all__ = ["AppendOrigin", "AppendResult", "PartitionLog", "RecordsSlice"]

_logger = logging.getLogger(__name__)

T = TypeVar("T")

NO_EPOCH = -1


class PartitionLog:
    """One partition's log. Offsets are plain attributes; only its own methods change them."""

    # With more attributes than 30, Python would give each log a dict of its own.
    __slots__ = (
        "__weakref__",
        "_files",
        "_flush_messages",
        "_held_back_records",
        "_hidden_ends",
        "_limits",
        "_noted_epoch",
        "_offline_reason",
        "_removal",
        "_remover",
        "_rules",
        "_slicer",
        "_swap",
        "_unsynced",
        "_validate_records",
        "appended_bytes",
        "config",
        "counted_end_offset",
        "directory",
        "epochs",
        "high_watermark",
        "is_prepared",
        "last_flush_ms",
        "leader_epoch",
        "log_end_offset",
        "log_start_offset",
        "on_append",
        "on_disk_error",
        "on_flush_due",
        "on_roll",
        "partition",
        "producers",
        "recovery_point",
        "segments",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        source: LogSource,
        loaded: LoadedLog,
        *,
        topic: str,
        partition: int,
        topic_id: bytes | None,
        validate_records: bool = False,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.directory = source.directory
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.counted_end_offset = loaded.log_end_offset  # at the last `take_appended`
        self.appended_bytes = 0  # since then
        self.high_watermark = loaded.log_end_offset
        self.recovery_point = loaded.recovery_point
        self.last_flush_ms = 0  # of the clock that `mark_flushed` gets
        self.segments = loaded.segments
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.leader_epoch = loaded.epochs.latest.epoch if loaded.epochs.latest else 0
        self._noted_epoch = NO_EPOCH  # the last one that an append has assigned in `epochs`
        self.is_prepared = loaded.segments.active.is_appendable  # an append does not read from disk
        # Called when records become readable, and when the log is deleted or goes offline.
        self.on_append: set[Callable[[PartitionLog], None]] = set()
        # Called after a new active segment is created. The old one is to be synced.
        self.on_roll: set[Callable[[PartitionLog], None]] = set()
        self.on_disk_error: Callable[[PartitionLog, OSError], None] | None = None
        # Called when the log is to be synced (flush.messages). None: the caller calls `flush`.
        self.on_flush_due: Callable[[PartitionLog], None] | None = None
        self._files = source.files
        self._remover = SegmentRemover(loaded.segments, loaded.producers, source.deletions)
        self._removal: SegmentRemoval | None = None
        self._swap: SegmentSwap | None = None  # one that is not over
        self._unsynced = UnsyncedFiles(source.files, is_directory_synced=loaded.is_directory_synced)
        self._validate_records = validate_records
        self._hidden_ends = HiddenEnds()
        self._offline_reason: str | None = None
        self._slicer = Slicer(loaded.segments)
        self._held_back_records = 0
        self.update_config(source.config)

    @classmethod
    def open(
        cls,
        source: LogSource,
        topic: str,
        partition: int,
        topic_id: bytes | None = None,
        *,
        validate_records: bool = False,
    ) -> "PartitionLog":
        """Load or create the log in `source.directory`. Raises the errors of `load_log`."""
        return cls(
            source,
            load_log(source),
            topic=topic,
            partition=partition,
            topic_id=topic_id,
            validate_records=validate_records,
        )

    def __repr__(self) -> str:
        return f"PartitionLog({self.name}, {self.log_start_offset} to {self.log_end_offset})"

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def key(self) -> TopicPartition:
        """(topic, partition), the key in tables of logs."""
        return TopicPartition(self.topic, self.partition)

    @property
    def last_stable_offset(self) -> int:
        """The end (exclusive) of what read_committed consumers may see: all transactions before it
        have ended, with markers below the high watermark.
        """
        visible = self.high_watermark
        unstable = self.producers.first_unstable_offset
        hidden = self._hidden_ends.first_offset(visible)
        if hidden is not None:
            unstable = hidden if unstable is None else min(hidden, unstable)
        if unstable is None or unstable > visible:
            return visible
        return max(unstable, self.log_start_offset)

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    def take_appended(self) -> tuple[int, int]:
        """The records and bytes that were appended since the last call, or since the opening."""
        records = max(0, self.log_end_offset - self.counted_end_offset)
        appended_bytes = self.appended_bytes
        self.counted_end_offset = self.log_end_offset
        self.appended_bytes = 0
        return records, appended_bytes

    @property
    def unflushed_records(self) -> int:
        """The number of offsets that are not flushed, which flush.messages limits."""
        return self.log_end_offset - self.recovery_point

    def update_config(self, config: TopicConfig) -> None:
        """Apply new topic settings. Existing segments keep their SegmentSettings."""
        self.config = config
        self._rules = shared(AppendRules.of(config, validate_records=self._validate_records))
        self._limits = shared(RollLimits(config.segment_size_bytes, config.max_segment_ms))
        # Each append of a log that holds records back takes the way of one that must be synced.
        self._flush_messages = 0 if self._held_back_records else config.flush_messages

    def hold_back(self, records: int) -> None:
        """Keep the newest records from readers, as if followers lacked them; 0: show all.

        It is for tests of clients: meanwhile flush.messages has no effect.
        """
        self._held_back_records = records
        self.update_config(self.config)
        self._show_but_held_back()

    def _show_but_held_back(self) -> None:
        visible = self.log_end_offset - self._held_back_records
        if visible > self.high_watermark:
            self._advance_high_watermark(visible)

    def become_leader(self, leader_epoch: int) -> None:
        """Write this epoch into records appended from now on. Raises KAFKA_STORAGE_ERROR."""
        self.check_online()
        self.epochs.assign(leader_epoch, self.log_end_offset)
        if not self.epochs.is_stored:
            with self._reporting("write its leader epochs"):
                self._write_epochs()
        self.leader_epoch = leader_epoch

    def assign_topic_id(self, topic_id: bytes) -> None:
        """Store the id of the log's topic in partition.metadata.

        Raises ApiError: INCONSISTENT_TOPIC_ID if another id is stored, KAFKA_STORAGE_ERROR.
        """
        if self.topic_id is not None and self.topic_id != topic_id:
            raise ApiError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{self.name} has the topic id {uuid_text(self.topic_id)}, "
                f"not {uuid_text(topic_id)}",
            )
        if self.topic_id is None:
            path = self.directory / PARTITION_METADATA
            with self._reporting("write its topic id"):
                write_topic_id(self._files, path, topic_id, sync=False)
            self.topic_id = topic_id
            self._unsynced.add(path)

    # --- append

    def prepare_append(self) -> None:
        """Read what the first append needs; may be called twice. Raises KAFKA_STORAGE_ERROR."""
        self.check_online()
        with self._reporting("append"):
            self.segments.active.prepare_append()
        self.is_prepared = True

    def append(
        self,
        batch: Buffer,
        *,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_verified: bool = False,
        walked: WalkedRecords | None = None,
    ) -> AppendResult:
        """Append one batch of a client, or of a coordinator; markers have a method of their own.

        `walked`: see `check_client_batch`. Raises ApiError: what `check_client_batch` raises;
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE;
        RECORD_LIST_TOO_LARGE; KAFKA_STORAGE_ERROR. Then nothing is appended. After
        WalkTooLongError the caller must read the records elsewhere and call again with `walked`.
        """
        self.check_online()
        if origin is AppendOrigin.CLIENT:
            return self._append_from_client(batch, now_ms, transaction_verified, walked)
        header = read_coordinator_batch(batch, self._rules)
        if header.producer_id >= 0:
            if header.is_control:  # its content is not checked here
                raise ApiError(ErrorCode.INVALID_RECORD, "markers have a method of their own")
            self.producers.check(header, self.log_end_offset, check_sequence=False)
        return self._write(header, (memoryview(batch)[PREFIX_BYTES:],), now_ms)

    def _append_from_client(
        self,
        batch: Buffer,
        now_ms: int,
        transaction_verified: bool,
        walked: WalkedRecords | None,
    ) -> AppendResult:
        header, parts, stamp_ms = check_client_batch(batch, self._rules, now_ms, walked)
        if header.producer_id >= 0 and not self.producers.continues_with(header):
            duplicate = self.producers.find_duplicate(header)
            if duplicate is not None:
                if duplicate.last_offset >= self.recovery_point and self._is_flush_due():
                    self._request_flush()  # acknowledged when the first copy is
                return AppendResult(
                    duplicate.first_offset,
                    duplicate.last_offset,
                    duplicate.timestamp_ms,
                    self.log_start_offset,
                    is_duplicate=True,
                )
            if header.is_transactional:
                self.producers.check_transaction(header, is_verified=transaction_verified)
            self.producers.check(header, self.log_end_offset)
        return self._write(header, parts, now_ms, log_append_time_ms=stamp_ms)

    def check_ordinary(self, data: memoryview, now_ms: int) -> OrdinaryBatch | None:
        """Check in one pass whether a client's batch may be appended. Changes nothing.

        Returns None if `append` must decide: the batch is out of the ordinary or read-only, or its
        append may have to read a file, roll a segment or sync.
        """
        if self._offline_reason is not None or not self.is_prepared:
            return None
        batch = read_ordinary_batch(data, self._rules, now_ms)
        if batch is None or data.readonly:
            return None
        if batch.header is not None and not self.producers.continues_with(batch.header):
            return None
        end_offset = self.log_end_offset + batch.record_count
        if end_offset - self.recovery_point >= self._flush_messages:
            return None
        has_room = self.segments.active.has_room(
            len(data), self._limits, batch.max_timestamp, end_offset - 1
        )
        return batch if has_room else None

    def append_ordinary(self, batch: OrdinaryBatch) -> int:
        """Append a batch that `check_ordinary` has just returned.

        Returns the base offset. The first 16 bytes of the batch's data are overwritten, because to
        write one buffer takes less time than two. Raises KAFKA_STORAGE_ERROR: then nothing is
        appended.
        """
        if self._offline_reason is not None:
            self.check_online()  # the append before, to another log, may have lost the directory
        offset, data = self.log_end_offset, batch.data
        PREFIX.pack_into(data, 0, offset, batch.batch_length, self.leader_epoch)
        last_offset = offset + batch.record_count - 1
        active, max_timestamp = self.segments.active, batch.max_timestamp
        self._write_to(active, (data,), last_offset, max_timestamp, producer=batch.header)
        return offset

    def begin_verification(
        self, producer: tuple[int, int], sequence: int, now_ms: int, *, is_v2: bool
    ) -> bool:
        """Whether a batch's transaction must be verified before `append`.

        `producer`: its id and epoch. `sequence`: the batch's first sequence number, or -1. `is_v2`:
        see Verification. Raises ApiError: INVALID_PRODUCER_EPOCH, KAFKA_STORAGE_ERROR.
        """
        self.check_online()
        return self.producers.begin_verification(*producer, sequence, now_ms, is_v2=is_v2)

    def append_marker(self, marker: EndMarker, now_ms: int) -> AppendResult:
        """Append the marker that ends a transaction; nothing is written if it is refused.

        A transaction of which this log has no batch may be ended, too. Raises ApiError:
        INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED, KAFKA_STORAGE_ERROR.
        """
        self.check_online()
        self.producers.check_marker(marker, self.log_end_offset)
        header, content = marker_batch(marker, now_ms, has_append_time=self._rules.log_append_time)
        first_offset = self.producers.open_since(marker.producer_id)
        result = self._write(header, (content,), now_ms, marker=marker)
        if first_offset is not None and self.high_watermark <= result.base_offset:
            self._hidden_ends.add(result.base_offset, first_offset)
        return result

    def _write(
        self,
        header: BatchHeader,
        parts: tuple[Buffer, ...],
        now_ms: int,
        *,
        log_append_time_ms: int = -1,
        marker: EndMarker | None = None,
    ) -> AppendResult:
        """Write a batch, which has passed all checks. `parts`: its bytes after the first 16.

        `marker` is the content of a batch that ends a transaction.
        """
        size = header.size_bytes
        if size > self._limits.segment_bytes:
            raise ApiError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes are appended to {self.name}, over segment.bytes "
                f"({self._limits.segment_bytes})",
            )
        segment, base_offset = self.segments.active, self.log_end_offset
        last_offset, max_timestamp = base_offset + header.last_offset_delta, header.max_timestamp
        try:
            if segment.should_roll(size, self._limits, max_timestamp, last_offset, now_ms):
                segment = self._roll(base_offset, now_ms)
        except OSError as error:
            raise self.failed("append", error) from error
        prefix = batch_prefix(base_offset, header.batch_length, self.leader_epoch)
        producer = header if marker is None and header.producer_id >= 0 else None
        buffers = (prefix, *parts)
        self._write_to(
            segment, buffers, last_offset, max_timestamp, producer=producer, marker=marker
        )
        return AppendResult(base_offset, last_offset, log_append_time_ms, self.log_start_offset)

    def _write_to(
        self,
        segment: Segment,
        buffers: tuple[Buffer, ...],
        last_offset: int,
        max_timestamp: int,
        *,
        producer: BatchHeader | None,
        marker: EndMarker | None = None,
    ) -> None:
        """Write a batch to the active segment, and update the state.

        `producer`: the header of a batch that changes the state of its producer, but is no marker.
        """
        offset = self.log_end_offset
        try:
            if self.leader_epoch != self._noted_epoch:
                self.epochs.assign(self.leader_epoch, offset)
                self._noted_epoch = self.leader_epoch
            size = segment.append(buffers, last_offset, max_timestamp)
        except OSError as error:
            raise self.failed("append", error) from error
        if producer is not None:
            self.producers.update(producer, offset)
        elif marker is not None:
            self._end_transaction(segment, marker, offset, max_timestamp)
        self.appended_bytes += size
        self.log_end_offset = self.producers.map_end_offset = end_offset = last_offset + 1
        if end_offset - self.recovery_point < self._flush_messages:
            self.high_watermark = end_offset
            if self.on_append:
                self.notify_waiters()
        else:
            self._request_flush()

    def _advance_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        self.notify_waiters()

    def notify_waiters(self) -> None:
        """Notify readers that wait: there are new records, or the log is deleted or offline."""
        for callback in tuple(self.on_append):
            callback(self)

    def _end_transaction(
        self, segment: Segment, marker: EndMarker, offset: int, timestamp_ms: int
    ) -> None:
        completed = self.producers.end_transaction(marker, offset, timestamp_ms)
        if completed is not None and completed.is_aborted:
            segment.txn_index.append(aborted_transaction(self.producers, completed))
            self._unsynced.add(segment.path(FileKind.TXN_INDEX))

    # --- roll

    def roll(self, now_ms: int) -> None:
        """Create a new segment, unless the active one is empty. Raises KAFKA_STORAGE_ERROR."""
        self.check_online()
        with self._reporting("roll"):
            self._roll(self.log_end_offset, now_ms)

    def _roll(self, base_offset: int, now_ms: int) -> Segment:
        """Create a new active segment. `on_roll` callbacks have the old one synced."""
        old = self.segments.active
        if old.base_offset == base_offset:
            return old
        self._seal(old)
        self.producers.map_end_offset = base_offset
        snapshot = self.producers.begin_snapshot()
        if snapshot is not None:
            self._unsynced.add(snapshot)
        # The last step that can fail, because it cannot be undone: the next start would take an
        # empty segment that is not in the list for the log's end.
        new = Segment.create(
            self._files,
            self.directory,
            base_offset,
            SegmentSettings.of(self.config, self.directory, base_offset),
            now_ms=now_ms,
            preallocate_bytes=self._limits.segment_bytes if self.config.preallocate else 0,
        )
        self.segments.add(new)
        for callback in tuple(self.on_roll):
            callback(self)
        return new

    def _seal(self, segment: Segment) -> None:
        segment.seal()
        if max(self.recovery_point, self._unsynced.planned_offset) >= self.log_end_offset:
            # Its records are synced, or are being synced, so no later flush covers it. Its new
            # length is not synced.
            for path in segment.paths():
                self._unsynced.add(path)

    # --- flush

    def _is_flush_due(self) -> bool:
        return self.unflushed_records >= self._flush_messages

    def _request_flush(self) -> None:
        """Start a sync. Readers and the producer's response wait for it."""
        if self._held_back_records:
            self._show_but_held_back()
        elif self.on_flush_due is None:  # no background sync: the caller calls `flush`
            self._advance_high_watermark(self.log_end_offset)
        else:
            self.on_flush_due(self)

    def sync_recovered(self) -> None:
        """Sync what recovery has found, if flush.messages demands it. Readers wait for the sync.

        A process that was killed may have written it without a sync.
        """
        if self.recovery_point < self.log_end_offset and self._is_flush_due():
            self.high_watermark = max(self.recovery_point, self.log_start_offset)
            self._request_flush()

    def flush_plan(self, up_to_offset: int | None = None) -> FlushPlan | None:
        """Plan the sync of everything before an offset (default: the log's end).

        Returns None if there is nothing to sync. The plan ends earlier if there are many segments;
        then the caller makes another one after `mark_flushed`. After a roll, flush up to
        `segments.active.base_offset`. Writes the producer snapshot that the roll has begun, which
        `producers.encode_in_parts` may have encoded before. Raises KAFKA_STORAGE_ERROR.
        """
        end_offset = self.log_end_offset if up_to_offset is None else up_to_offset
        with self._reporting("write a producer snapshot"):
            self.producers.finish_snapshot()
        with self._reporting("write its indexes"):
            self._write_epochs()
            return self._unsynced.plan(
                self.segments, self.directory, self.recovery_point, end_offset
            )

    def _write_epochs(self) -> None:
        if self.epochs.flush(sync=False):
            self._unsynced.add(self.epochs.path)

    def mark_flushed(self, plan: FlushPlan, now_ms: int) -> None:
        """Move the recovery point after `plan.run()`, and let readers see synced records.

        Ignored if the log was truncated since the plan was made. flush.ms is counted from
        `now_ms`, a time of a clock that never jumps.
        """
        self.last_flush_ms = now_ms
        if self._unsynced.mark_synced(plan):
            self.recovery_point = max(self.recovery_point, plan.up_to_offset)
            if self.recovery_point > self.high_watermark and not self._held_back_records:
                self._advance_high_watermark(self.recovery_point)
            self._hidden_ends.drop_visible(self.high_watermark)

    def flush(self, now_ms: int) -> None:
        """Sync everything on this thread. `now_ms` as in `mark_flushed`.

        Raises KAFKA_STORAGE_ERROR.
        """
        self.check_online()
        while (plan := self.flush_plan()) is not None:
            try:
                plan.run()
            except OSError as error:
                self.take_offline(f"a sync failed: {error}")
                raise self.failed("sync", error) from error
            self.mark_flushed(plan, now_ms)

    # --- read

    def read(self, offset: int, max_bytes: int, *, at_least_one_batch: bool) -> RecordsSlice:
        """At most `max_bytes` of whole batches of one segment, from the one that holds `offset` on.

        Empty from the high watermark on. Also empty if the first batch is larger than `max_bytes`;
        `at_least_one_batch` returns that batch. Raises ApiError: OFFSET_OUT_OF_RANGE,
        CORRUPT_MESSAGE, KAFKA_STORAGE_ERROR.
        """
        self.check_online()
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{offset} is not in [{self.log_start_offset}, {self.log_end_offset}]",
            )
        try:
            records = self._slicer.cut(
                offset, self.log_end_offset, max_bytes, at_least_one_batch=at_least_one_batch
            )
            if self.high_watermark < self.log_end_offset:
                records = cut_before(self.segments, records, offset, self.high_watermark)
            return records
        except OSError as error:
            raise self.failed("read", error) from error
        except (CorruptRecordError, EOFError) as error:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"{self.name}: {error}") from error

    def read_committed(
        self, offset: int, max_bytes: int, *, at_least_one_batch: bool
    ) -> CommittedRead:
        """Like `read`, but only up to the last stable offset, and with aborted transactions."""
        records = self.read(offset, max_bytes, at_least_one_batch=at_least_one_batch)
        return self._query(
            lambda: cut_to_committed(
                self.segments, records, offset, self.last_stable_offset, self.log_end_offset
            )
        )

    def readable_bytes(
        self, records: RecordsSlice, offset: int, max_bytes: int, *, committed: bool
    ) -> int:
        """What counts for a Fetch that waits for bytes, and has read `records` from `offset` on.

        Not only whole batches do, but the bytes up to the end that the reader may see, `max_bytes`
        at most. If a later segment has that end, they are enough for any Fetch. Raises as `read`.
        Kafka: DelayedFetch.tryComplete.
        """
        end_offset = self.last_stable_offset if committed else self.high_watermark
        return self._query(
            lambda: readable_bytes(self.segments, records, offset, end_offset, max_bytes)
        )

    def batches(self, start_offset: int) -> Iterator[memoryview]:
        """Every whole batch from the one that holds `start_offset` on, with its CRC verified.

        Raises CorruptRecordError, OSError. As in `read`, `on_disk_error` gets an OSError, too.
        """
        first = max(self.segments.floor_index(start_offset), 0)
        try:
            for segment in list(self.segments)[first:]:
                for _, data in segment.batches(max(start_offset, segment.base_offset)):
                    yield data
        except OSError as error:
            self.failed("read", error)
            raise

    # --- offsets by time and epoch

    def earliest_offset(self) -> OffsetAtTime:
        """The log start offset, and its leader epoch if that is known.

        This and the methods below raise KAFKA_STORAGE_ERROR if the log is offline.
        """
        self.check_online()
        first = self.epochs.earliest
        known = first is not None and first.start_offset <= self.log_start_offset
        return OffsetAtTime(-1, self.log_start_offset, first.epoch if first and known else NO_EPOCH)

    def latest_offset(self) -> OffsetAtTime:
        """The log end offset, and the newest leader epoch."""
        self.check_online()
        latest = self.epochs.latest
        return OffsetAtTime(-1, self.log_end_offset, latest.epoch if latest else NO_EPOCH)

    def offset_for_timestamp(self, timestamp_ms: int) -> OffsetAtTime | None:
        """The first record that is not older, or None. Raises as `read`."""
        return self._query(
            lambda: find_timestamp(self.segments, timestamp_ms, self.log_start_offset)
        )

    def offset_of_max_timestamp(self) -> OffsetAtTime | None:
        """The first record that has the largest timestamp; None if the log is empty."""
        return self._query(lambda: newest_record(self.segments))

    def offsets_written_before(self, timestamp_ms: int, now_ms: int) -> list[int]:
        """Base offsets of segments by modification time, see offset_lookup. Raises as `read`."""
        return self._query(
            lambda: offsets_written_before(
                self.segments, timestamp_ms, self.log_start_offset, self.high_watermark, now_ms
            )
        )

    def _query(self, search: Callable[[], T]) -> T:
        self.check_online()
        try:
            return search()
        except OSError as error:
            raise self.failed("read", error) from error
        except (CorruptRecordError, EOFError) as error:
            raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"{self.name}: {error}") from error

    def end_offset_for_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """(the largest known epoch up to that one, its end offset); (-1, -1) if unknown."""
        self.check_online()
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # --- deleting from the start

    def increment_log_start_offset(self, offset: int) -> bool:
        """Hide the records before `offset`; the next retention check deletes whole segments.

        Returns False if `offset` is not after the log start. Raises OFFSET_OUT_OF_RANGE,
        KAFKA_STORAGE_ERROR.
        """
        self.check_online()
        if offset > self.high_watermark:
            raise ApiError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"{offset} is after the high watermark {self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        # The recovery point does not move, although Kafka moves it. Otherwise an unsound batch
        # before the log start, which cannot be read any more, would end the log at the next
        # recovery.
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producers.on_log_start_offset_incremented(offset)
        return True

    def delete_first_segments(self, count: int, now_ms: int) -> None:
        """Delete the oldest segments: renamed at once, removed after file.delete.delay.ms."""
        removal = self.begin_removal(count, now_ms)
        try:
            with self._reporting("delete segments"):
                removal.run()
        finally:
            removal.finish()

    def begin_removal(self, count: int, now_ms: int) -> SegmentRemoval:
        """Remove the oldest segments from the log; the caller runs the rest of SegmentRemoval.

        The leader epochs are not written, because loading ignores epochs before the log start.
        Raises KAFKA_STORAGE_ERROR: nothing has changed, but a new segment may have been created.
        """
        if count == len(self.segments):
            self.roll(now_ms)
        old = [self.segments[index] for index in range(min(count, len(self.segments) - 1))]
        if old:
            self.increment_log_start_offset(self.segments[len(old)].base_offset)
            self._slicer.forget()
        removal = self._remover.begin(old, self.config.file_delete_delay_ms)
        self._removal = removal  # set first, because other threads write checkpoints
        removal.detach()
        return removal

    @property
    def first_file_offset(self) -> int:
        """The base offset of the first file, including files of an unfinished removal."""
        if self._removal is not None and not self._removal.is_finished:
            return self._removal.base_offset
        return self.segments[0].base_offset

    def _delete(self, old: Sequence[Segment]) -> None:
        self._slicer.forget()
        self._remover.delete(old, self.config.file_delete_delay_ms)

    # --- cleaned segments

    def stage_replacement(self, cleaned: Sequence[CleanedSegment], now_ms: int) -> SegmentSwap:
        """Begin to replace segments by `.cleaned` ones, see cleaning/segment_swap.py.

        The caller then calls `swap.sync()`, on any thread, and `complete_replacement`. Raises
        KAFKA_STORAGE_ERROR: nothing has changed.
        """
        self.check_online()
        with self._reporting("swap in cleaned segments"):
            swap = stage_cleaned(self._files, self.directory, self.config, cleaned, now_ms)
        self._swap = swap
        return swap

    def complete_replacement(
        self, swap: SegmentSwap, replaced: Iterable[int], sliced: Sliced = iter
    ) -> bool:
        """Finish the replacement of the segments with these base offsets.

        `sliced` iterates over segments, and may give way in between: the log may be used meanwhile,
        but its segments must not be deleted, nor its directory be renamed.

        Segments that were deleted meanwhile are skipped; if all were, nothing is replaced. A swap
        that a truncation has ended is left as it is, and one that it could not undo is undone.
        Returns False if the system refuses to rename or remove a file for a transient reason. Then
        the caller must call this again or take the log offline: the log is served, but a restart
        has to end the swap. Raises KAFKA_STORAGE_ERROR: then the log is offline.
        """
        self.check_online()
        if swap.is_over:
            return True
        bases = set(replaced)
        old = [segment for segment in self.segments if segment.base_offset in bases]
        try:
            if swap.is_undone or not old:
                swap.undo()
                self._swap = None
                return True
            paths = swap.complete(old, sliced)
        except OSError as error:
            if is_transient(error):
                if self.on_disk_error is not None:  # it reports what is lacking, once
                    self.on_disk_error(self, error)
                return False
            self.take_offline(f"a swap stopped half way: {error}")
            raise self.failed("swap in cleaned segments", error) from error
        if swap.is_over:
            return True
        swap.is_over = True
        self._swap = None
        self._slicer.forget()
        delay_ms = self.config.file_delete_delay_ms
        self._remover.replace(old, swap.new, paths, delay_ms)
        with self._reporting("delete snapshots of replaced segments"):
            self._remover.remove_snapshots(sliced(old), delay_ms)
        return True

    def discard_cleaned(self) -> None:
        """Remove files of an abandoned cleaning round. Raises KAFKA_STORAGE_ERROR."""
        self.check_online()
        with self._reporting("remove cleaned segments"):
            remove_leftovers(self._files, self.directory)

    # --- truncating the end

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Truncate the log before the batch that holds `offset`. Raises KAFKA_STORAGE_ERROR.

        A broker calls LogMaintenance.truncate: the log may be moving, or be clean up to its end.
        """
        self.check_online()
        if offset < self.log_end_offset:
            with self._reporting("truncate"):
                self._end_swap()
                self._truncate_to(offset, now_ms)

    @property
    def truncations(self) -> int:
        """How often the log was truncated, or went over to other files, since it was opened."""
        return self._unsynced.truncations

    def _end_swap(self) -> None:
        """Undo a swap of cleaned segments, or complete it if it has begun to replace old ones."""
        swap = self._swap
        if swap is None:
            return
        # Noted also if the truncation then fails: the cleaner's round must not go on without this
        # group. It could remove a tombstone whose older records are in the group.
        self._unsynced.note_truncation()
        if not self.complete_replacement(swap, [segment.base_offset for segment in swap.old]):
            text = f"{self.name} could not truncate: files of a swap cannot be changed now"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)

    def _truncate_to(self, offset: int, now_ms: int) -> None:
        if offset < self.segments[0].base_offset:
            self._restart_at(offset, now_ms)
            return
        self._unsynced.note_truncation()
        old = [segment for segment in self.segments if segment.base_offset > offset]
        self._delete(old)
        # This also has the directory synced before any new record counts as synced. Otherwise a
        # power cut could bring the deleted segments back after the new end of the log.
        self._unsynced.add(self.epochs.path)
        self.segments.active.truncate_to(offset)
        self.log_end_offset = offset
        self.high_watermark = min(self.high_watermark, offset)
        self.recovery_point = min(self.recovery_point, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self._hidden_ends.truncate_to(offset)
        self.epochs.truncate_from_end(offset)
        self._noted_epoch = NO_EPOCH
        self.epochs.flush()
        rebuild_producer_state(self.producers, self.segments, self.log_start_offset, offset, now_ms)
        recall_recent_batches(self.producers, self.segments, offset)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        """Delete all records; the next one gets `offset`. Raises KAFKA_STORAGE_ERROR."""
        self.check_online()
        with self._reporting("truncate"):
            self._end_swap()
            self._restart_at(offset, now_ms)

    def _restart_at(self, offset: int, now_ms: int) -> None:
        self._unsynced.note_truncation()
        self._delete(list(self.segments))
        settings = SegmentSettings.of(self.config, self.directory, offset)
        self.segments.add(
            Segment.create(self._files, self.directory, offset, settings, now_ms=now_ms)
        )
        self.log_start_offset = self.log_end_offset = offset
        self.high_watermark = self.recovery_point = offset
        self._hidden_ends = HiddenEnds()
        self.epochs.clear()
        self._noted_epoch = NO_EPOCH
        self.epochs.flush()
        self.producers.truncate_fully_and_start_at(offset)

    # --- closing, offline, moving

    def close(self, now_ms: int) -> None:
        """Sync everything for a clean stop. `now_ms` as in `flush`. Raises KAFKA_STORAGE_ERROR."""
        if self._offline_reason is not None:
            return
        with self._reporting("close"):
            if self.segments.active.is_appendable:
                self._seal(self.segments.active)
            snapshot = self.producers.take_snapshot()
        if snapshot is not None:
            self._unsynced.add(snapshot)
        self.flush(now_ms)
        self.take_offline("it is closed")

    def take_offline(self, reason: str) -> None:
        """Answer every request with KAFKA_STORAGE_ERROR from now on, and release the files."""
        self._offline_reason = reason
        self._slicer.forget()
        for segment in self.segments:
            segment.release_files()

    @property
    def is_online(self) -> bool:
        return self._offline_reason is None

    def move_to(self, directory: Path) -> None:
        """Use the new name of the log's directory, which was renamed."""
        self.directory = directory
        self._unsynced.note_rename()
        self.producers.directory = directory
        self.epochs.path = directory / self.epochs.path.name
        for segment in self.segments:
            segment.move_to(directory)

    def use_copies_in(self, directory: Path, small_files: Sequence[Path]) -> None:
        """Use the copies of the log's files in that directory (FutureLog).

        `small_files`, by their new paths, are not synced yet. A flush that is running covers the
        old files, so its result is ignored.
        """
        self.directory = directory
        self.producers.directory = directory
        self.epochs.path = directory / self.epochs.path.name
        for segment in self.segments:
            segment.use_copies_in(directory)
        self._unsynced.move_to(directory, small_files)

    def check_online(self) -> None:
        """Raise KAFKA_STORAGE_ERROR if the directory failed or the log is closed or deleted."""
        if self._offline_reason is not None:
            raise ApiError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} is offline: {self._offline_reason}"
            )

    @contextmanager
    def _reporting(self, action: str) -> Iterator[None]:
        """Turn an OSError into the error of `failed`. Not for append and read: it costs time."""
        try:
            yield
        except OSError as error:
            raise self.failed(action, error) from error

    def failed(self, action: str, error: OSError) -> ApiError:
        """Report a disk error to the log file and to `on_disk_error`; return the error to raise."""
        _logger.error("%s could not %s: %s", self.name, action, error)
        if self.on_disk_error is not None:
            self.on_disk_error(self, error)
        return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name} could not {action}: {error}")
