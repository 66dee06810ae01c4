"""Message sets of magic 0 and 1, as clients of Kafka 0.8 to 0.10 speak: whole records, both ways.

The layout is drawn in message_set.py, with what wrappers mean for offsets and times. Here sets are
read record by record, and written as old clients and brokers wrote them. Of what a wrapper holds
nothing is kept but its bytes.

Kafka: AbstractLegacyRecordBatch.DeepRecordsIterator, MemoryRecordsBuilder.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator

from .batch_header import LOG_APPEND_TIME_BIT, LOG_OVERHEAD, NO_TIMESTAMP
from .compression import MAX_DECOMPRESSED_BYTES, NO_LIMIT, Buffer, CompressionType, compress
from .lz4_header import with_old_checksum
from .message_set import (
    MAGIC_V0,
    MAGIC_V1,
    Entry,
    InvalidRecordError,
    LegacyRecord,
    MessageSet,
)
from .record import Record

__all__ = [
    "MAGIC_V0",
    "MAGIC_V1",
    "Entry",
    "InvalidRecordError",
    "LegacyRecord",
    "build_message_set",
    "check_entry_crc",
    "read_entries",
    "read_message_set",
]

_SEAL = struct.Struct(">qiI")
_FORMAT = struct.Struct(">BB")
_SIZE = struct.Struct(">i")
_TIMESTAMP = struct.Struct(">q")


def read_entries(
    data: Buffer, *, whole: bool = False, max_messages: int = NO_LIMIT
) -> Iterator[Entry]:
    """The messages of a set, wrappers unopened and nothing checked but sizes and magic.

    A last message that is cut off is left out, or with `whole` refused. Raises CorruptRecordError;
    for a v2 batch among them InvalidRecordError, above `max_messages` TooManyRecordsError.
    """
    return MessageSet(data, "", max_messages).entries(whole=whole)


def check_entry_crc(data: Buffer, entry: Entry) -> None:
    """Raises CorruptRecordError when a message's bytes are not what was checksummed."""
    MessageSet(data, "").check_crc(entry)


def read_message_set(
    data: Buffer,
    *,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
    max_messages: int = NO_LIMIT,
    check_crc: bool = True,
    whole: bool = False,
) -> Iterator[LegacyRecord]:
    """All records of a set, wrappers opened; they own their bytes.

    `max_bytes` and `max_messages` are what one wrapper may hold; the second holds for those outside
    of wrappers too. A message that is cut off, also the last inside a wrapper, is left out, or with
    `whole` refused. Raises CorruptRecordError on the way; its kind InvalidRecordError where the
    bytes are sound and their meaning is not, its kind TooManyRecordsError above a limit.
    """
    outer = MessageSet(data, "", max_messages)
    for entry in outer.entries(whole=whole):
        if check_crc:
            outer.check_crc(entry)
        if not entry.is_compressed:
            yield outer.record(entry)
            continue
        inner = outer.opened(entry, max_bytes)
        base_offset = inner.base_offset(entry, whole=whole)
        for each in inner.entries(whole=whole):
            inner.check_inside(each, entry)
            if check_crc:
                inner.check_crc(each)
            yield inner.record_inside(each, entry, base_offset)


def build_message_set(
    records: Iterable[Record],
    *,
    magic: int,
    compression: CompressionType = CompressionType.NONE,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """The records as messages with the offsets they have; compressed, as one wrapper of them.

    Headers have no place in a message. With `log_append_time_ms` and magic 1 that is the time of
    all. A set of no records is empty. Raises ValueError for another magic or codec.
    """
    if magic not in (MAGIC_V0, MAGIC_V1) or compression > CompressionType.LZ4:
        raise ValueError(f"no message of magic {magic} is compressed with {compression.name}")
    stamp_ms = log_append_time_ms if magic > MAGIC_V0 else None
    time_bit = 0 if stamp_ms is None else LOG_APPEND_TIME_BIT
    relative = magic > MAGIC_V0 and compression is not CompressionType.NONE
    out = bytearray()
    base_offset = last_offset = None
    newest_ms = NO_TIMESTAMP
    for record in records:
        last_offset = record.offset
        if base_offset is None:
            base_offset = last_offset if relative else 0
        timestamp_ms = record.timestamp_ms if stamp_ms is None else stamp_ms
        newest_ms = max(newest_ms, timestamp_ms)
        head = _head(magic, time_bit, timestamp_ms)
        _append_message(out, last_offset - base_offset, head, record.key, record.value)
    if last_offset is None or compression is CompressionType.NONE:
        return out
    head = _head(magic, time_bit | compression, newest_ms)
    return _wrapped(out, last_offset, head, magic, compression)


def _wrapped(
    inside: bytearray, offset: int, head: bytes, magic: int, compression: CompressionType
) -> bytearray:
    packed = compress(compression, inside)
    if compression is CompressionType.LZ4 and magic == MAGIC_V0:
        packed = with_old_checksum(packed)
    wrapper = bytearray()
    _append_message(wrapper, offset, head, None, packed)
    return wrapper


def _head(magic: int, attributes: int, timestamp_ms: int) -> bytes:
    head = _FORMAT.pack(magic, attributes)
    return head + _TIMESTAMP.pack(timestamp_ms) if magic > MAGIC_V0 else head


def _append_message(
    out: bytearray, offset: int, head: bytes, key: bytes | None, value: bytes | None
) -> None:
    body = b"".join((head, *_as_delimited(key), *_as_delimited(value)))
    out += _SEAL.pack(offset, len(body) + _SEAL.size - LOG_OVERHEAD, zlib.crc32(body))
    out += body


def _as_delimited(data: bytes | None) -> tuple[bytes, bytes]:
    return (_SIZE.pack(-1), b"") if data is None else (_SIZE.pack(len(data)), data)
