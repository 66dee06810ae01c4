"""Reads batches of any format in a log: a v2 batch, or a message of magic 0 or 1.

An old log begins with messages of the formats before Kafka 0.11 (message_set.py) and continues with
v2 batches, sometimes in the same segment. A log treats such a message as a small batch: it has an
offset, a size, a largest timestamp and a checksum. Its fields in a BatchHeader are

    base offset = last offset   the message's offset; for a wrapper, that of its last message
    leader epoch, producer      none (-1)
    attributes                  codec and LogAppendTime: the same bits as in v2
    timestamps                  those of the message or the wrapper; -1 with magic 0
    record count                1; for a wrapper -1, because only its content has the number

The first offset of a wrapper is also found only in its content: see `first_offset`.

Kafka: LegacyFileChannelRecordBatch, AbstractLegacyRecordBatch.
"""

import struct
from collections.abc import Iterator

from .batch_header import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME_BIT,
    MAGIC_POSITION,
    MAGIC_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptRecordError,
    read_header,
)
from .compression import Buffer
from .legacy import read_message_set
from .message_set import MAGIC_V0, MAGIC_V1, SMALLEST_SIZES, LegacyRecord
from .record import Record, read_records

UNKNOWN_COUNT = -1
LONGEST_MESSAGE_HEAD = 26  # of magic 1, up to and including the timestamp
SMALLEST_MESSAGE_BYTES = 26  # of magic 0, including offset and size

_HEAD = struct.Struct(">qiIbB")
_TIMESTAMP = struct.Struct(">q")


def read_any_header(data: Buffer, position: int = 0) -> BatchHeader:
    """The header of the batch or message at `position`. Raises CorruptRecordError.

    Nothing but the magic is checked in a v2 batch.
    """
    if len(data) - position > MAGIC_POSITION and data[position + MAGIC_POSITION] == MAGIC_V2:
        return read_header(data, position)
    return read_message_header(data, position)


def read_message_header(data: Buffer, position: int = 0) -> BatchHeader:
    """The head of a message of magic 0 or 1, as a BatchHeader. Raises CorruptRecordError."""
    left = len(data) - position
    if left < _HEAD.size:
        raise CorruptRecordError(f"{left} bytes at byte {position} are too few for a message")
    offset, size, crc, magic, attributes = _HEAD.unpack_from(data, position)
    if magic not in (MAGIC_V0, MAGIC_V1):
        raise CorruptRecordError(f"no batch has magic {magic}")
    if size < SMALLEST_SIZES[magic] or offset < 0:
        raise CorruptRecordError(f"no message of magic {magic} has {size} bytes, offset {offset}")
    timestamp_ms = NO_TIMESTAMP
    if magic == MAGIC_V1:
        if left < LONGEST_MESSAGE_HEAD:
            raise CorruptRecordError(f"{left} bytes at byte {position} are too few for a message")
        (timestamp_ms,) = _TIMESTAMP.unpack_from(data, position + _HEAD.size)
        attributes &= COMPRESSION_MASK | LOG_APPEND_TIME_BIT
    else:
        attributes &= COMPRESSION_MASK
    return BatchHeader(
        base_offset=offset,
        batch_length=size,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=timestamp_ms,
        max_timestamp=timestamp_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=UNKNOWN_COUNT if attributes & COMPRESSION_MASK else 1,
    )


def read_any_records(batch: Buffer, header: BatchHeader) -> Iterator[Record]:
    """The records of one complete batch or message whose checksum has been verified.

    Raises CorruptRecordError, when it is called or while iterating.
    """
    if header.magic == MAGIC_V2:
        return read_records(batch, header=header)
    return map(_as_record, read_message_set(batch, check_crc=False))


def first_offset(batch: Buffer, header: BatchHeader) -> int:
    """The offset of the first record. A wrapper is decompressed. Raises CorruptRecordError."""
    if header.record_count != UNKNOWN_COUNT or header.magic == MAGIC_V2:
        return header.base_offset
    return next(read_any_records(batch, header)).offset


def _as_record(old: LegacyRecord) -> Record:
    return Record(old.key, old.value, old.timestamp_ms, (), old.offset)
