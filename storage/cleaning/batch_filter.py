"""Decides which records of a batch the log cleaner keeps.

A record is removed if a later one has its key, if it has no key, or if it is a tombstone and its
batch's delete horizon has passed. A record after the last offset of the offset map is always kept.
A batch of an aborted transaction is removed as a whole. The marker of a transaction is removed when
no batch of it is left and the marker's own delete horizon has passed.

A batch without records is kept as a bare header if it is the last one of an active producer (it
holds the sequence that the next batch must follow), or if it ends at the high watermark.

A batch that cannot be read, because its CRC is wrong or its records do not match its header, is
copied unchanged and reported. A client may have sent it so: Produce need not check the records of a
batch. Its keys replace no older records.

Kafka: the RecordFilter in Cleaner.cleanInto, Cleaner.shouldRetainRecord, MemoryRecords.filterTo.
"""

from typing import NamedTuple

from odradek.protocol.any_batch import read_message_header
from odradek.protocol.batch_header import (
    MAGIC_V2,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptRecordError,
    check_crc,
    read_header,
)
from odradek.protocol.compression import Buffer, CompressionType
from odradek.protocol.legacy import read_entries, read_message_set
from odradek.protocol.message_set import LegacyRecord
from odradek.protocol.record import payload, read_records
from odradek.protocol.records.control import ControlRecordType, control_type
from odradek.protocol.schema import DecodeError
from odradek.storage.txn_index import AbortedTransaction

from .cleaned_batch import batch_of, batch_of_old_records, delete_horizon, empty_batch_of
from .cleaned_transactions import CleanedTransactions
from .input import StoredBatch
from .offset_map import OffsetMap
from .record_spans import RecordSpan, record_spans
from .task import LAST_RECORD, CleanerStats, CleaningTask


class KeptBatch(NamedTuple):
    """The bytes to write, with the last offset and largest timestamp for the indexes."""

    data: Buffer
    last_offset: int
    max_timestamp: int


class BatchFilter:
    """Filters the batches of one round, in the order of their offsets."""

    def __init__(
        self,
        task: CleaningTask,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        stats: CleanerStats,
    ) -> None:
        self.unreadable: list[str] = []
        self._task = task
        self._last_records: dict[int, tuple[int, int]] = {
            producer_id: (last_offset, epoch)
            for producer_id, last_offset, epoch in LAST_RECORD.iter_unpack(task.last_records)
        }
        self._offsets = offsets
        self._transactions = transactions
        self._stats = stats
        self._new_horizon_ms = delete_horizon(task.now_ms, task.delete_retention_ms)

    def take_retained_aborted(self) -> list[AbortedTransaction]:
        """Return the aborted transactions for the .txnindex of the segment that ends here."""
        retained, self._transactions.retained = self._transactions.retained, []
        return retained

    def keep(self, stored: StoredBatch, *, keep_old_tombstones: bool) -> KeptBatch | None:
        """Return what is kept of a batch, or None. `keep_old_tombstones`: of formats v0, v1."""
        self._stats.bytes_read += len(stored.data)
        try:
            if stored.magic < MAGIC_V2:
                return self._keep_old(stored, keep_old_tombstones)
            header = read_header(stored.data)
            check_crc(stored.data, header)
        except CorruptRecordError as error:
            return self._keep_unreadable(stored, NO_TIMESTAMP, error)
        try:
            return self._keep_sound(stored.data, header)
        except (CorruptRecordError, DecodeError) as error:
            return self._keep_unreadable(stored, header.max_timestamp, error)

    def _keep_unreadable(
        self, stored: StoredBatch, max_timestamp: int, error: Exception
    ) -> KeptBatch:
        line = f"{self._task.name}: the batch at offset {stored.base_offset}: {error}"
        self.unreadable.append(line)
        return KeptBatch(stored.data, stored.last_offset, max_timestamp)

    def _keep_sound(self, data: memoryview, header: BatchHeader) -> KeptBatch | None:
        now_ms = self._task.now_ms
        horizon_ms = header.base_timestamp if header.has_delete_horizon else NO_TIMESTAMP
        if header.is_control:
            kind, is_empty = marker_of(data, header)
            may_go = (
                self._transactions.on_empty_marker(header)
                if is_empty
                else self._transactions.on_marker(header, kind)
            )
            drops_all = may_go and header.has_delete_horizon and horizon_ms <= now_ms
        else:
            may_go = drops_all = self._transactions.on_batch(header)
        keeps_header = self._is_kept_when_empty(header)
        if drops_all and not keeps_header:
            return None
        if drops_all:
            self._stats.messages_read += header.record_count
            return _written(*empty_batch_of(header))
        records = payload(data, header)
        spans = record_spans(records, header)
        self._stats.messages_read += len(spans)
        if header.is_control:
            kept = spans
        else:
            keep_tombstones = horizon_ms < 0 or now_ms < horizon_ms
            kept = self._kept_of(spans, header.base_offset, keep_tombstones)
        if not kept:
            return _written(*empty_batch_of(header)) if keeps_header else None
        self._stats.messages_written += len(kept)
        sets_horizon = not header.has_delete_horizon and (
            (header.is_control and may_go) or False in [has_value for *_, has_value in kept]
        )
        if len(kept) == len(spans) and not sets_horizon:
            return KeptBatch(data, header.last_offset, header.max_timestamp)
        if sets_horizon:
            horizon_ms = self._new_horizon_ms
        return _written(*batch_of(header, records, kept, horizon_ms))

    def _is_kept_when_empty(self, header: BatchHeader) -> bool:
        # Before Kafka 4.4: where the round ends. So each round left a header in the log.
        if header.next_offset == self._task.high_watermark:
            return True
        last = self._last_records.get(header.producer_id)
        if last is None or header.producer_id < 0:
            return False
        last_offset, epoch = last
        if last_offset >= 0:
            return header.last_offset == last_offset
        return header.is_control and header.producer_epoch == epoch

    def _kept_of(
        self, spans: list[RecordSpan], base_offset: int, keep_tombstones: bool
    ) -> list[RecordSpan]:
        latest, find = self._offsets.latest_offset, self._offsets.get
        if base_offset > latest:
            return spans
        kept = []
        for span in spans:
            offset, key = base_offset + span[3], span[4]  # quicker than to unpack all six
            if offset > latest:
                kept.append(span)
            elif key is None:
                self._stats.invalid_messages += 1
            elif offset >= find(key) and (span[5] or keep_tombstones):  # 5: has a value
                kept.append(span)
        return kept

    # --- formats before v2

    def _keep_old(self, stored: StoredBatch, keep_tombstones: bool) -> KeptBatch | None:
        codec, records = old_records(stored.data)
        self._stats.messages_read += len(records)
        latest = self._offsets.latest_offset
        kept = []
        for record in records:
            if record.offset > latest:
                kept.append(record)
            elif record.key is None:
                self._stats.invalid_messages += 1
            elif record.offset >= self._offsets.get(record.key) and (
                record.value is not None or keep_tombstones
            ):
                kept.append(record)
        if kept:
            self._stats.messages_written += len(kept)
            has_tombstones = any(record.value is None for record in kept)
            horizon_ms = self._new_horizon_ms if has_tombstones else NO_TIMESTAMP
            return _written(*batch_of_old_records(kept, codec, horizon_ms))
        if stored.base_offset + 1 == self._task.high_watermark:
            return _written(*empty_batch_of(read_message_header(stored.data)))
        return None


def old_records(data: Buffer) -> tuple[CompressionType, list[LegacyRecord]]:
    """The records of one message or wrapper, and its codec. Raises CorruptRecordError."""
    (entry,) = read_entries(data, whole=True)
    records = list(read_message_set(data, whole=True))
    offsets = [record.offset for record in records]
    if offsets != sorted(set(offsets)) or offsets[-1:] > [entry.offset]:
        raise CorruptRecordError(f"the offsets in the wrapper at {entry.offset} do not ascend")
    return entry.compression, records


def marker_of(data: memoryview, header: BatchHeader) -> tuple[ControlRecordType | None, bool]:
    """The kind of a control batch's first record, and whether there is none."""
    record = next(read_records(data, header=header), None)
    return (None, True) if record is None else (control_type(record.key), False)


def _written(header: BatchHeader, data: bytearray) -> KeptBatch:
    return KeptBatch(data, header.last_offset, header.max_timestamp)
