"""The header of a v2 record batch: its 61 bytes, its flags and its checksum.

On disk and on the wire: never renumber.

    at  size  field                     written by
     0     8  base offset               the broker
     8     4  batch length              the producer; the number of bytes after this field
    12     4  partition leader epoch    the broker
    16     1  magic                     the producer: 2 (at this position in every format)
    17     4  CRC-32C                   the producer; covers all bytes from 21 on
    21     2  attributes                the producer (see below)
    23     4  last offset delta         the producer
    27     8  base timestamp            the producer; the delete horizon if bit 6 is set
    35     8  max timestamp             the producer; the broker if LogAppendTime
    43     8  producer id               the producer; -1: not idempotent
    51     2  producer epoch            the producer
    53     4  base sequence             the producer
    57     4  record count              the producer
    61        records, compressed as one stream (record.py, compression.py)

    attributes: bits 0-2 compression, 3 LogAppendTime, 4 transactional, 5 control, 6 delete horizon

The two fields that the broker sets on every append are not covered by the checksum. So the broker
replaces only the first 16 bytes (`batch_prefix`) and stores the rest as the producer sent it. Only
LogAppendTime changes bytes that the checksum covers (`stamp_log_append_time`).

Kafka: org.apache.kafka.common.record.internal.DefaultRecordBatch.
"""

import struct
from typing import NamedTuple

from .compression import Buffer, CompressionType
from .crc import crc32c

HEADER_BYTES = 61
LOG_OVERHEAD = 12  # base offset and batch length, which the length does not include
PREFIX_BYTES = 16  # base offset, batch length, partition leader epoch
MAGIC_POSITION = 16
CRC_POSITION = 17
CHECKED_POSITION = 21  # the checksum covers all bytes from here on
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
PREFIX = struct.Struct(">qii")  # of these the first three
MAGIC_AND_CRC = struct.Struct(">bI")  # the next two
COVERED_HEADER = struct.Struct(">hiqqqhii")  # and the others, which the checksum covers
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_INT64 = struct.Struct(">q")


class CorruptRecordError(ValueError):
    """Bytes are not valid records. The message says what is wrong, and where."""


class TooManyRecordsError(CorruptRecordError):
    """Records that take more bytes or steps to read than the caller allows; they may be sound."""


class BatchHeader(NamedTuple):
    """The fields of the header, as stored."""

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
        """The size of the whole batch, including the header."""
        return LOG_OVERHEAD + self.batch_length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> CompressionType:
        """The codec. Raises CorruptRecordError for the ids 5 to 7, which no codec has."""
        try:
            return CompressionType(self.attributes & COMPRESSION_MASK)
        except ValueError:
            raise CorruptRecordError(
                f"compression id {self.compression_id} names no codec (0 to 4 do)"
            ) from None

    @property
    def compression_id(self) -> int:
        """The codec's id, 0 to 7. Only 0 to 4 are codecs."""
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
        """If so, the base timestamp is the time after which the cleaner removes tombstones."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def last_sequence(self) -> int:
        """The last record's sequence number, wrapped from 2**31-1 to 0; -1 without sequences."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def increment_sequence(sequence: int, increment: int) -> int:
    """`sequence` plus `increment`, wrapped from 2**31-1 to 0."""
    return (sequence + increment) & MAX_SEQUENCE


def decrement_sequence(sequence: int, decrement: int) -> int:
    """The inverse of `increment_sequence`."""
    return (sequence - decrement) & MAX_SEQUENCE


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """The batch header at `position`. Its fields are not checked.

    If the magic is not 2, no other field has a meaning. Raises CorruptRecordError if fewer than 61
    bytes are left.
    """
    try:
        return BatchHeader._make(HEADER.unpack_from(data, position))
    except struct.error:
        left = len(data) - position
        raise CorruptRecordError(
            f"a batch header has {HEADER_BYTES} bytes, {left} are left at byte {position}"
        ) from None


def pack_header(header: BatchHeader) -> bytes:
    """The 61 bytes of `header`, with its CRC unchanged."""
    return HEADER.pack(*header)


def batch_crc(batch: Buffer) -> int:
    """Compute the CRC-32C of exactly one batch, header and records."""
    return crc32c(memoryview(batch)[CHECKED_POSITION:])


def check_crc(batch: Buffer, header: BatchHeader) -> None:
    """Raise CorruptRecordError if the bytes of one batch do not match the CRC in its header."""
    computed = batch_crc(batch)
    if computed != header.crc:
        raise CorruptRecordError(f"stored CRC {header.crc:#010x}, computed {computed:#010x}")


def batch_prefix(base_offset: int, batch_length: int, partition_leader_epoch: int) -> bytes:
    """The first 16 bytes, which the broker writes; the producer's bytes from 16 on follow them."""
    return PREFIX.pack(base_offset, batch_length, partition_leader_epoch)


def stamp_log_append_time(batch: bytearray | memoryview, timestamp_ms: int) -> None:
    """Set LogAppendTime in one batch, in place: the attribute bit, the max timestamp, the CRC."""
    (attributes,) = _ATTRIBUTES.unpack_from(batch, CHECKED_POSITION)
    _ATTRIBUTES.pack_into(batch, CHECKED_POSITION, attributes | LOG_APPEND_TIME_BIT)
    _INT64.pack_into(batch, MAX_TIMESTAMP_POSITION, timestamp_ms)
    stamp_crc(batch)


def stamp_crc(batch: bytearray | memoryview) -> None:
    """Compute the CRC of one batch and store it in its header."""
    _CRC.pack_into(batch, CRC_POSITION, batch_crc(batch))
