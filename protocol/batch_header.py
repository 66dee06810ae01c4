"""The header of a v2 record batch: 61 bytes, their flags, their checksum.

On disk and on the wire: never renumber.

    at  size  field                     written by
     0     8  base offset               the broker
     8     4  batch length              the producer; counts the bytes behind this field
    12     4  partition leader epoch    the broker
    16     1  magic                     the producer: 2 (this byte lies here in every format)
    17     4  CRC-32C                   the producer; covers everything from 21 on
    21     2  attributes                the producer (see below)
    23     4  last offset delta         the producer
    27     8  base timestamp            the producer; the delete horizon where bit 6 is set
    35     8  max timestamp             the producer; the broker for LogAppendTime
    43     8  producer id               the producer; -1: not idempotent
    51     2  producer epoch            the producer
    53     4  base sequence             the producer
    57     4  record count              the producer
    61        records, compressed as one stream (record.py, compression.py)

    attributes: bits 0-2 compression, 3 LogAppendTime, 4 transactional, 5 control, 6 delete horizon

The two fields that the broker stamps on every append lie outside the checksum, so that the batch a
producer sent is stored as it came: `batch_prefix` makes the first 16 bytes anew, the rest is the
client's. Only LogAppendTime touches checked bytes (`stamp_log_append_time`).

Kafka: org.apache.kafka.common.record.internal.DefaultRecordBatch.
"""

import struct
from typing import NamedTuple

from crc32c import crc32c

from .compression import Buffer, CompressionType

HEADER_BYTES = 61
LOG_OVERHEAD = 12  # base offset and batch length: what the length does not count
PREFIX_BYTES = 16  # base offset, batch length, partition leader epoch
MAGIC_POSITION = 16
CRC_POSITION = 17
CHECKED_POSITION = 21  # the checksum covers everything from here on
MAX_TIMESTAMP_POSITION = 35
MAGIC_V2 = 2

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_PARTITION_LEADER_EPOCH = -1
MAX_SEQUENCE = 0x7FFFFFFF

COMPRESSION_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

HEADER = struct.Struct(">qiibIhiqqqhii")
_PREFIX = struct.Struct(">qii")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_INT64 = struct.Struct(">q")


class CorruptRecordError(ValueError):
    """Bytes that claim to be records and are not; the message names what is wrong, and where."""


class TooManyRecordsError(CorruptRecordError):
    """Records that take more bytes or steps to read than the caller allows; they may be sound."""


class BatchHeader(NamedTuple):
    """The header's fields, as they are stored."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch, header included."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> CompressionType:
        """Raises CorruptRecordError for the three ids that name no codec."""
        try:
            return CompressionType(self.attributes & COMPRESSION_MASK)
        except ValueError:
            raise CorruptRecordError(
                f"compression id {self.compression_id} names no codec (0 to 4 do)"
            ) from None

    @property
    def compression_id(self) -> int:
        """0 to 7; `compression` knows 0 to 4."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Then the base timestamp is the time after which the cleaner drops tombstones."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def last_sequence(self) -> int:
        """-1 without sequences; after 2**31-1 comes 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def increment_sequence(sequence: int, increment: int) -> int:
    """`sequence` moved on by `increment`, wrapped from 2**31-1 to 0."""
    return (sequence + increment) & MAX_SEQUENCE


def decrement_sequence(sequence: int, decrement: int) -> int:
    """The inverse of `increment_sequence`."""
    return (sequence - decrement) & MAX_SEQUENCE


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """The batch header at `position`, unchecked: of older formats only the magic has a meaning.

    Raises CorruptRecordError when fewer than 61 bytes are there.
    """
    try:
        return BatchHeader._make(HEADER.unpack_from(data, position))
    except struct.error:
        left = len(data) - position
        raise CorruptRecordError(
            f"a batch header has {HEADER_BYTES} bytes, {left} are left at byte {position}"
        ) from None


def pack_header(header: BatchHeader) -> bytes:
    """The 61 bytes of `header`, with the CRC it carries."""
    return HEADER.pack(*header)


def batch_crc(batch: Buffer) -> int:
    """The CRC-32C of one whole batch (header and records, nothing behind them), computed."""
    return crc32c(memoryview(batch)[CHECKED_POSITION:])


def check_crc(batch: Buffer, header: BatchHeader) -> None:
    """Raises CorruptRecordError when the bytes of one whole batch are not what was checksummed."""
    computed = batch_crc(batch)
    if computed != header.crc:
        raise CorruptRecordError(f"stored CRC {header.crc:#010x}, computed {computed:#010x}")


def batch_prefix(base_offset: int, batch_length: int, partition_leader_epoch: int) -> bytes:
    """The 16 bytes that the broker writes in front of what the producer sent from byte 16 on."""
    return _PREFIX.pack(base_offset, batch_length, partition_leader_epoch)


def stamp_log_append_time(batch: bytearray | memoryview, timestamp_ms: int) -> None:
    """Give one whole batch the broker's time, in place: attribute bit, max timestamp, CRC."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, CHECKED_POSITION)
    _ATTRIBUTES.pack_into(batch, CHECKED_POSITION, attributes | LOG_APPEND_TIME_BIT)
    _INT64.pack_into(batch, MAX_TIMESTAMP_POSITION, timestamp_ms)
    stamp_crc(batch)


def stamp_crc(batch: bytearray | memoryview) -> None:
    """Compute the checksum of one whole batch and store it."""
    _CRC.pack_into(batch, CRC_POSITION, batch_crc(batch))
