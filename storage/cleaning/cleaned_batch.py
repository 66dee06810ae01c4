"""Builds the batches that the log cleaner writes.

A batch that loses records keeps its base offset, last offset, producer, sequence, leader epoch,
compression and timestamp type: the producer's next sequence follows from them. Its records keep
their offsets, so there are gaps. The largest timestamp changes, and the base timestamp becomes

    that of the first kept record, or
    the delete horizon (attribute bit 6), which is set when the cleaner first sees a tombstone, or
    the marker of a transaction that has no batches left. After that time they may be removed
    (KIP-534).

Messages of the formats before v2 become v2 batches, as in Kafka since 4.0. A record is copied
unchanged if its timestamp delta stays the same; otherwise its length and delta are rewritten.

Kafka: MemoryRecords.buildRetainedRecordsInto, DefaultRecordBatch.writeEmptyHeader.
"""

from collections.abc import Sequence

from odradek.protocol.batch_header import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    pack_header,
    stamp_crc,
)
from odradek.protocol.compression import CompressionType, compress
from odradek.protocol.message_set import LegacyRecord
from odradek.protocol.primitives import read_varlong, write_varint
from odradek.protocol.record import MAX_INT64, MIN_INT64, Record, append_record

from .record_spans import RecordSpan

_KEPT_BITS = LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT


def delete_horizon(now_ms: int, delete_retention_ms: int) -> int:
    """The time after which tombstones seen now may be removed; -1: never, it exceeds 64 bits."""
    horizon_ms = now_ms + delete_retention_ms
    return horizon_ms if horizon_ms <= MAX_INT64 else NO_TIMESTAMP


def batch_of(
    header: BatchHeader, data: bytes, kept: Sequence[RecordSpan], horizon_ms: int
) -> tuple[BatchHeader, bytearray]:
    """Build a batch of the kept records, at least one. `data`: the decompressed records.

    `horizon_ms` is its delete horizon; -1: none.
    """
    old_base_ms = header.base_timestamp
    fixed_ms = header.max_timestamp if header.is_log_append_time else None
    base_ms = horizon_ms
    if horizon_ms < 0:
        first_ms = _as_int64(old_base_ms + read_varlong(data, kept[0][2])[0])
        base_ms = first_ms if fixed_ms is None else fixed_ms
    records = bytearray()
    max_ms = NO_TIMESTAMP if fixed_ms is None else fixed_ms
    for start, end, at, *_ in kept:
        old_delta, rest = read_varlong(data, at)
        stamp_ms = _as_int64(old_base_ms + old_delta) if fixed_ms is None else fixed_ms
        max_ms = max(max_ms, stamp_ms)
        if stamp_ms - base_ms == old_delta:
            records += data[start:end]
        else:
            _append_shifted(records, data[rest:end], stamp_ms - base_ms)
    codec = header.compression
    attributes = codec | header.attributes & _KEPT_BITS
    if horizon_ms >= 0:
        attributes |= DELETE_HORIZON_BIT
    new = header._replace(
        attributes=attributes, base_timestamp=base_ms, max_timestamp=max_ms, record_count=len(kept)
    )
    return _with_crc(new, compress(codec, records) if codec else records)


def empty_batch_of(header: BatchHeader) -> tuple[BatchHeader, bytearray]:
    """Build a batch without records: it keeps the producer's last sequence and the last offset."""
    new = header._replace(
        magic=MAGIC_V2,
        attributes=header.attributes & _KEPT_BITS,
        base_timestamp=NO_TIMESTAMP,
        record_count=0,
    )
    return _with_crc(new, b"")


def batch_of_old_records(
    kept: Sequence[LegacyRecord], codec: CompressionType, horizon_ms: int
) -> tuple[BatchHeader, bytearray]:
    """Build a v2 batch of records of message format v0 or v1, at least one."""
    stamped = kept[0].is_log_append_time
    base_offset = kept[0].offset
    base_ms = horizon_ms if horizon_ms >= 0 else kept[0].timestamp_ms
    records = bytearray()
    for old in kept:
        record = Record(old.key, old.value, old.timestamp_ms)
        append_record(records, record, old.timestamp_ms - base_ms, old.offset - base_offset)
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        magic=MAGIC_V2,
        crc=0,
        attributes=codec
        | (LOG_APPEND_TIME_BIT if stamped else 0)
        | (DELETE_HORIZON_BIT if horizon_ms >= 0 else 0),
        last_offset_delta=kept[-1].offset - base_offset,
        base_timestamp=base_ms,
        max_timestamp=max([old.timestamp_ms for old in kept]),
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=len(kept),
    )
    return _with_crc(header, compress(codec, records) if codec else records)


def _with_crc(header: BatchHeader, stored: bytes | bytearray) -> tuple[BatchHeader, bytearray]:
    header = header._replace(batch_length=HEADER_BYTES - LOG_OVERHEAD + len(stored))
    batch = bytearray(pack_header(header))
    batch += stored
    stamp_crc(batch)
    return header, batch


def _append_shifted(out: bytearray, rest: bytes, timestamp_delta: int) -> None:
    """Append a record with another timestamp delta."""
    head = bytearray(1)  # attributes: unused
    write_varint(head, _as_int64(timestamp_delta))
    write_varint(out, len(head) + len(rest))
    out += head
    out += rest


def _as_int64(value: int) -> int:
    """Wrap a sum to 64 bits, like a Java long."""
    if MIN_INT64 <= value <= MAX_INT64:
        return value
    return (value - MIN_INT64) % (1 << 64) + MIN_INT64
