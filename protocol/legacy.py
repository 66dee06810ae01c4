"""Reads and writes message sets of magic 0 and 1, the format of Kafka 0.8 to 0.10.

message_set.py describes the layout, and how wrappers (compressed messages that contain messages)
change offsets and timestamps. This module reads a set record by record, and writes sets as old
clients and brokers did.

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
    LegacyRecord,
    MessageSet,
)
from .record import Record

_OFFSET_SIZE_CRC = struct.Struct(">qiI")
_MAGIC_ATTRIBUTES = struct.Struct(">BB")
_SIZE = struct.Struct(">i")
_TIMESTAMP = struct.Struct(">q")


def read_entries(
    data: Buffer, *, whole: bool = False, max_messages: int = NO_LIMIT
) -> Iterator[Entry]:
    """Yield the messages of a set. Wrappers are not opened; only sizes and magic are checked.

    A truncated last message is ignored; with `whole` it is an error. Raises CorruptRecordError;
    InvalidRecordError for a v2 batch in the set; TooManyRecordsError above `max_messages`.
    """
    return MessageSet(data, "", max_messages).entries(whole=whole)


def check_entry_crc(data: Buffer, entry: Entry) -> None:
    """Raise CorruptRecordError if a message does not match its checksum."""
    MessageSet(data, "").check_crc(entry)


def read_message_set(
    data: Buffer,
    *,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
    max_messages: int = NO_LIMIT,
    check_crc: bool = True,
    whole: bool = False,
) -> Iterator[LegacyRecord]:
    """Yield all records of a set, with wrappers opened. The records own their bytes.

    `max_bytes` and `max_messages` limit the content of one wrapper; `max_messages` also limits the
    messages of the set itself. A truncated last message, also in a wrapper, is ignored; with
    `whole` it is an error. Raises CorruptRecordError; its subclass InvalidRecordError if the bytes
    are intact and their meaning is not valid; its subclass TooManyRecordsError above a limit.
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
        for inner_entry in inner.entries(whole=whole):
            inner.check_inside(inner_entry, entry)
            if check_crc:
                inner.check_crc(inner_entry)
            yield inner.record_inside(inner_entry, entry, base_offset)


def build_message_set(
    records: Iterable[Record],
    *,
    magic: int,
    compression: CompressionType = CompressionType.NONE,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """Encode the records as messages with their offsets; with compression, as one wrapper.

    Headers are dropped: a message has none. With `log_append_time_ms` and magic 1, all messages get
    that timestamp. No records give an empty set. Raises ValueError for another magic or codec.
    """
    if magic not in (MAGIC_V0, MAGIC_V1) or compression > CompressionType.LZ4:
        raise ValueError(f"magic {magic} with compression {compression.name} is not a message set")
    append_time_ms = log_append_time_ms if magic > MAGIC_V0 else None
    time_bit = 0 if append_time_ms is None else LOG_APPEND_TIME_BIT
    relative = magic > MAGIC_V0 and compression is not CompressionType.NONE
    out = bytearray()
    base_offset = last_offset = None
    newest_ms = NO_TIMESTAMP
    for record in records:
        last_offset = record.offset
        if base_offset is None:
            base_offset = last_offset if relative else 0
        timestamp_ms = record.timestamp_ms if append_time_ms is None else append_time_ms
        newest_ms = max(newest_ms, timestamp_ms)
        head = _head(magic, time_bit, timestamp_ms)
        _append_message(out, last_offset - base_offset, head, record.key, record.value)
    if last_offset is None or compression is CompressionType.NONE:
        return out
    head = _head(magic, time_bit | compression, newest_ms)
    return _wrapper(out, last_offset, head, magic, compression)


def _wrapper(
    inside: bytearray, offset: int, head: bytes, magic: int, compression: CompressionType
) -> bytearray:
    compressed = compress(compression, inside)
    if compression is CompressionType.LZ4 and magic == MAGIC_V0:
        compressed = with_old_checksum(compressed)
    wrapper = bytearray()
    _append_message(wrapper, offset, head, None, compressed)
    return wrapper


def _head(magic: int, attributes: int, timestamp_ms: int) -> bytes:
    head = _MAGIC_ATTRIBUTES.pack(magic, attributes)
    return head + _TIMESTAMP.pack(timestamp_ms) if magic > MAGIC_V0 else head


def _append_message(
    out: bytearray, offset: int, head: bytes, key: bytes | None, value: bytes | None
) -> None:
    body = b"".join((head, *_length_prefixed(key), *_length_prefixed(value)))
    out += _OFFSET_SIZE_CRC.pack(
        offset, len(body) + _OFFSET_SIZE_CRC.size - LOG_OVERHEAD, zlib.crc32(body)
    )
    out += body


def _length_prefixed(data: bytes | None) -> tuple[bytes, bytes]:
    return (_SIZE.pack(-1), b"") if data is None else (_SIZE.pack(len(data)), data)
