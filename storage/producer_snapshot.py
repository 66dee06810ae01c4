"""A .snapshot file: a log's producer state before an offset, which is the file's name.

On disk: never renumber. A version (int16, 1), the CRC-32C of all bytes after it (uint32), a count
(int32), and per producer 46 bytes: id, epoch, last sequence, last offset, offset delta and max
timestamp of its last batch, epoch of the last transaction coordinator, first offset of the open
transaction (-1: none). Of a producer's five batches only the last one survives a restart.

Kafka: ProducerStateManager.readSnapshot and writeSnapshot, ProducerSnapshot.json.
"""

import struct
from collections.abc import Iterable

from odradek.protocol.batch_header import NO_SEQUENCE
from odradek.protocol.crc import crc32c

from .producer_entry import NO_OFFSET, BatchSpan, ProducerEntry

VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_BATCH = BatchSpan(NO_SEQUENCE, NO_OFFSET, 0, 0)


class CorruptSnapshotError(Exception):
    """A producer snapshot that cannot be read: an older one, or the log, must be read instead."""


def encode_snapshot(producers: Iterable[ProducerEntry]) -> bytes:
    """The bytes of the file, in the order given."""
    entries = [_encode(producer) for producer in producers]
    checked = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEAD.pack(VERSION, crc32c(checked)) + checked


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    """The producers in the bytes of the file. Raises CorruptSnapshotError."""
    if len(data) < _HEAD.size + _COUNT.size:
        raise CorruptSnapshotError(f"{len(data)} bytes are too few")
    version, stored = _HEAD.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshotError(f"version {version} is unknown, {VERSION} was expected")
    computed = crc32c(memoryview(data)[_HEAD.size :])
    if stored != computed:
        raise CorruptSnapshotError(f"stored CRC {stored:#010x}, computed {computed:#010x}")
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    entries = memoryview(data)[_HEAD.size + _COUNT.size :]
    if len(entries) != count * _ENTRY.size:
        raise CorruptSnapshotError(f"{count} producers announced in {len(entries)} bytes")
    return [_decode(*fields) for fields in _ENTRY.iter_unpack(entries)]


def _encode(producer: ProducerEntry) -> bytes:
    # No properties: a roll encodes all producers in one turn of the event loop.
    sequence, offset, delta, _ = producer.batches[-1] if producer.batches else _NO_BATCH
    return _ENTRY.pack(
        producer.producer_id,
        producer.epoch,
        sequence,
        offset,
        delta,
        producer.last_timestamp_ms,
        producer.coordinator_epoch,
        producer.txn_first_offset,
    )


def _decode(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp_ms: int,
    coordinator_epoch: int,
    txn_first_offset: int,
) -> ProducerEntry:
    producer = ProducerEntry(
        producer_id,
        epoch,
        timestamp_ms,
        coordinator_epoch=coordinator_epoch,
        txn_first_offset=max(txn_first_offset, -1),
    )
    if last_offset >= 0:
        span = BatchSpan(last_sequence, last_offset, offset_delta, timestamp_ms)
        producer.add_span(epoch, span)
    return producer
