"""A .snapshot file: a log's producer state before an offset, which is the file's name.

A log with many producers encodes it in parts, while batches are appended: a producer that changes
meanwhile is encoded before it does.

On disk: never renumber. A version (int16, 1), the CRC-32C of all bytes after it (uint32), a count
(int32), and per producer 46 bytes: id, epoch, last sequence, last offset, offset delta and max
timestamp of its last batch, epoch of the last transaction coordinator, first offset of the open
transaction (-1: none). Of a producer's five batches only the last one survives a restart.

Kafka: ProducerStateManager.readSnapshot and writeSnapshot, ProducerSnapshot.json.
"""

import struct
from collections.abc import Collection, Iterator

from odradek.protocol.batch_header import NO_SEQUENCE
from odradek.protocol.crc import crc32c

from .parts import in_parts
from .producer_entry import NO_OFFSET, BatchSpan, ProducerEntry

VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NO_BATCH = BatchSpan(NO_SEQUENCE, NO_OFFSET, 0, 0)


class CorruptSnapshotError(Exception):
    """A producer snapshot that cannot be read: an older one, or the log, must be read instead."""


class SnapshotEncoder:
    """Encodes producers as they are now, in their order."""

    def __init__(self, producers: Collection[ProducerEntry]) -> None:
        self._left = in_parts(producers)
        self._encoded_early: dict[ProducerEntry, bytes] = {}
        self._encoded = [_COUNT.pack(len(producers))]
        self._crc = crc32c(self._encoded[0])

    def keep(self, producer: ProducerEntry) -> None:
        """Encode a producer that is about to change."""
        if producer not in self._encoded_early:
            self._encoded_early[producer] = _encode(producer)

    def encode_in_parts(self) -> Iterator[None]:
        """Encode the rest in parts; several callers may share the work."""
        early = self._encoded_early
        for part in self._left:
            encoded = b"".join([early.get(entry) or _encode(entry) for entry in part])
            self._crc = crc32c(encoded, self._crc)
            self._encoded.append(encoded)
            yield

    def finish(self) -> list[bytes]:
        """Encode the rest, and return the bytes of the file."""
        for _ in self.encode_in_parts():
            pass
        return [_HEAD.pack(VERSION, self._crc), *self._encoded]


def encode_snapshot(producers: Collection[ProducerEntry]) -> bytes:
    """The bytes of the file, in the order given."""
    return b"".join(SnapshotEncoder(producers).finish())


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
    # No properties: there may be many.
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
