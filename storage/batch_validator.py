"""Checks a batch of a client before it is appended, and rewrites it where the topic requires it.

The header of every batch is checked, in the order in which Kafka finds the same faults
(ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator). Base offset
and leader epoch are assigned later. They are not covered by the CRC, so the rest of the client's
bytes is written unchanged.

The records are read one by one only if

- the topic is compacted: records without a key are refused;
- `message.timestamp.before.max.ms` limits the timestamp of the oldest record;
- `compression.type` differs from the producer's codec: the batch is rebuilt;
- the header is refused for its timestamps: the response must name the records at fault;
- the producer has set LogAppendTime, so that each record has the maximum timestamp;
- a compressed batch claims more than DENSEST_RECORDS records for each of its bytes;
- `odradek.validate.records=full` is set.

Kafka reads the records of every batch. It refuses a batch with a valid header and invalid records;
odradek stores that batch unless one of the conditions above holds. So a stored record count may be
false, but its cost for others (offsets, deliveries to share groups) is bounded by the batch's size.
Of LZ4 the flags of the frame are checked always: with linked blocks, which is what LZ4 libraries
write if they are not told otherwise, everything works until a Java consumer reads the batch.

Four changes are made. With LogAppendTime the broker's time is written into the header (a new CRC,
the records are unchanged). A header whose maximum timestamp differs from the records that were read
is corrected. A batch with another codec than the topic's is rebuilt. A LogAppendTime that the
producer has set is taken away.
"""

import struct
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from odradek.protocol.batch_header import (
    CHECKED_POSITION,
    COMPRESSION_MASK,
    COVERED_HEADER,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_AND_CRC,
    MAGIC_POSITION,
    MAGIC_V2,
    PREFIX_BYTES,
    BatchHeader,
    TooManyRecordsError,
    read_header,
)
from odradek.protocol.compression import Buffer, CompressionType
from odradek.protocol.crc import crc32c
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.lz4_header import is_read_by_java
from odradek.protocol.record import SMALLEST_RECORD_BYTES

from .append_rules import AppendRules
from .record_walk import (
    AT_ONCE,
    WalkedRecords,
    WalkTooLongError,
    changes_codec,
    invalid,
    too_large,
    walk_records,
)

_LENGTH = struct.Struct(">i")
_MAX_CODEC = int(CompressionType.ZSTD)
_LZ4 = int(CompressionType.LZ4)
_LENGTH_AT = 8
# To how many bytes one byte of a stream can decompress at most: a deflate match of 258 bytes takes
# 2 bits, a snappy copy of 64 bytes takes 3 bytes, a byte of a length in LZ4 stands for 255 bytes,
# and a zstd block of 128 KiB takes 4 bytes. By codec id.
_LARGEST_RATIOS = (1, 1032, 22, 255, 32768)
# The densest batches of producers are those of empty records in zstd: 1.7 records for each byte.
DENSEST_RECORDS = 8
_SMALLEST_LEGACY_BATCH_LENGTH = 14


class NotOneBatchError(ApiError):
    """The data is not exactly one v2 batch. Kafka refuses it before it looks up the log.

    Kafka: ProduceRequest.validateRecords.
    """


class CheckedBatch(NamedTuple):
    """A batch that may be written.

    `parts` are its consecutive bytes from the magic byte on; the log writes the first 16 bytes.
    `log_append_time_ms` is -1 if the producer's timestamps are kept.
    """

    header: BatchHeader
    parts: tuple[Buffer, ...]
    log_append_time_ms: int


class OrdinaryBatch(Struct, frozen=True, gc=False):
    """A batch that may be stored as it was sent, and what an append needs of its header.

    `header` is None if the batch is not of an idempotent producer: a named tuple takes long to
    make.
    """

    data: memoryview
    batch_length: int
    record_count: int
    max_timestamp: int
    header: BatchHeader | None


def check_client_batch(
    data: Buffer, rules: AppendRules, now_ms: int, walked: WalkedRecords | None = None
) -> CheckedBatch:
    """Check the data of a client: exactly one v2 batch, of the length of `data`.

    `walked` is the result of `walk_records` for this batch, if that was called before.
    Raises ApiError with INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE or INVALID_TIMESTAMP;
    RecordsRefusedError if single records are at fault; WalkTooLongError if reading the records
    takes longer than the event loop may wait, so that it must be done elsewhere first.
    """
    header = read_one_batch(data)
    if header.base_offset:
        raise invalid(f"the base offset of a produced batch must be 0, not {header.base_offset}")
    if len(data) > rules.max_message_bytes:
        raise too_large(len(data), rules)
    view = memoryview(data)
    if crc32c(view[CHECKED_POSITION:]) != header.crc:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"the batch does not match its CRC {header.crc}")
    _check_header(header)
    if header.compression_id == _LZ4 and not is_read_by_java(view, HEADER_BYTES):
        raise invalid("its records are no LZ4 frame of independent blocks: Java reads no other")
    if walked is None and (rules.read_records or _needs_walk(header, rules, now_ms)):
        walked = _walk_now(view, rules, now_ms)
    if walked is not None:
        return _after_walk(view, header, rules, now_ms, walked)
    if rules.log_append_time:
        return _with_append_time(view, header, now_ms)
    return CheckedBatch(header, (view[PREFIX_BYTES:],), -1)


def read_ordinary_batch(data: memoryview, rules: AppendRules, now_ms: int) -> OrdinaryBatch | None:
    """Check a batch of a client in one pass: the quick twin of `check_client_batch`.

    Returns None if `check_client_batch` must decide: the batch may be invalid, or its records must
    be read or changed, or it is of a transaction.
    """
    size = len(data)
    if not HEADER_BYTES < size <= rules.max_message_bytes:
        return None
    fields = HEADER.unpack_from(data)
    base, length, _, magic, crc, codec, delta, _, max_ms, producer, _, sequence, count = fields
    if (  # `codec` are the attributes, of which no other is set
        magic == MAGIC_V2
        and length + LOG_OVERHEAD == size
        and base == 0
        and 0 < count == delta + 1
        and 0 <= codec <= _MAX_CODEC
        and (
            count * SMALLEST_RECORD_BYTES <= size - HEADER_BYTES
            or (codec and count <= (size - HEADER_BYTES) * DENSEST_RECORDS)
        )
        and (rules.compression is None or codec == rules.compression)
        and (producer < 0 or sequence >= 0)
        and (codec != _LZ4 or is_read_by_java(data, HEADER_BYTES))
        and max_ms - now_ms <= rules.timestamp_after_max_ms
        and not rules.read_records
        and not rules.log_append_time
        and crc32c(data[CHECKED_POSITION:]) == crc
    ):
        header = None if producer < 0 else BatchHeader._make(fields)
        return OrdinaryBatch(data, length, count, max_ms, header)
    return None


def read_one_batch(data: Buffer) -> BatchHeader:
    """Read the header of `data`, which must be one v2 batch. Raises NotOneBatchError.

    Raises ApiError with CORRUPT_MESSAGE for a batch that is shorter than a header.
    """
    if len(data) < HEADER_BYTES:
        raise _shorter_than_a_header(data)
    header = read_header(data)
    if header.magic != MAGIC_V2 or header.batch_length + LOG_OVERHEAD != len(data):
        raise _not_one_batch(data)
    return header


def without_tail(data: memoryview | bytes) -> memoryview | bytes:
    """The batch at the start of `data`. As in Kafka, what follows it is left off if it is no batch.

    Returns `data` if it does not begin with a v2 batch, or if `read_one_batch` must refuse it for
    what follows.
    """
    if len(data) <= MAGIC_POSITION:
        return data
    size = _LENGTH.unpack_from(data, _LENGTH_AT)[0] + LOG_OVERHEAD
    if size >= len(data):  # as nearly always
        return data
    if size < _SMALLEST_LEGACY_BATCH_LENGTH + LOG_OVERHEAD or data[MAGIC_POSITION] != MAGIC_V2:
        return data
    try:
        has_another = _first_batch_bytes(data[size:]) is not None
    except NotOneBatchError:
        return data
    return data if has_another else data[:size]


def read_coordinator_batch(data: Buffer, rules: AppendRules) -> BatchHeader:
    """Read the header of a batch that this broker made. Raises as `read_one_batch`.

    Raises ApiError with MESSAGE_TOO_LARGE.
    """
    header = read_one_batch(data)
    if len(data) > rules.max_message_bytes:
        raise too_large(len(data), rules)
    return header


def _check_header(header: BatchHeader) -> None:
    count = header.record_count
    if count <= 0 or header.last_offset_delta + 1 != count:
        raise invalid(f"{count} records do not span offsets 0 to {header.last_offset_delta}")
    if header.attributes:
        _check_attributes(header)
    largest_bytes = _stored_bytes(header) * _LARGEST_RATIOS[header.compression_id]
    if count * SMALLEST_RECORD_BYTES > largest_bytes:
        raise invalid(f"{count} records do not fit into {header.size_bytes} bytes")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise invalid(f"sequence number {header.base_sequence} of producer id {header.producer_id}")


def _check_attributes(header: BatchHeader) -> None:
    if header.attributes & COMPRESSION_MASK > CompressionType.ZSTD:
        raise invalid(f"compression type {header.attributes & COMPRESSION_MASK} is not known")
    if header.is_control:
        raise invalid("clients may not write control batches")


def _needs_walk(header: BatchHeader, rules: AppendRules, now_ms: int) -> bool:
    """Whether the records must be read: to rebuild the batch, count them, or name the faulty."""
    if changes_codec(header, rules) or header.is_log_append_time:
        return True
    if header.record_count > _stored_bytes(header) * DENSEST_RECORDS:
        return True
    return (
        not rules.log_append_time and header.max_timestamp - now_ms > rules.timestamp_after_max_ms
    )


def _stored_bytes(header: BatchHeader) -> int:
    """The size of the records as they are stored."""
    return header.size_bytes - HEADER_BYTES


def _walk_now(view: memoryview, rules: AppendRules, now_ms: int) -> WalkedRecords:
    walk = partial(walk_records, rules=rules, now_ms=now_ms)
    try:
        return walk(view, limits=AT_ONCE)
    except TooManyRecordsError as error:
        raise WalkTooLongError(str(error), bytes(view), walk) from None


def _after_walk(
    data: memoryview, header: BatchHeader, rules: AppendRules, now_ms: int, walked: WalkedRecords
) -> CheckedBatch:
    if walked.rebuilt is not None:
        view = memoryview(walked.rebuilt)
        rebuilt = read_header(view)
        if rules.log_append_time:
            return _with_append_time(view, rebuilt, now_ms)
        return CheckedBatch(rebuilt, (view[PREFIX_BYTES:],), -1)
    if rules.log_append_time:
        return _with_append_time(data, header, now_ms)
    if walked.newest_ms != header.max_timestamp or header.is_log_append_time:
        attributes = header.attributes & ~LOG_APPEND_TIME_BIT
        return _with_max_timestamp(data, header, attributes, walked.newest_ms)
    return CheckedBatch(header, (data[PREFIX_BYTES:],), -1)


def _with_append_time(data: memoryview, header: BatchHeader, now_ms: int) -> CheckedBatch:
    """The client's records under a header with the broker's time."""
    attributes = header.attributes | LOG_APPEND_TIME_BIT
    return _with_max_timestamp(data, header, attributes, now_ms)._replace(log_append_time_ms=now_ms)


def _with_max_timestamp(
    data: memoryview, header: BatchHeader, attributes: int, max_timestamp: int
) -> CheckedBatch:
    payload = data[HEADER_BYTES:]
    covered = COVERED_HEADER.pack(
        attributes,
        header.last_offset_delta,
        header.base_timestamp,
        max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    crc = crc32c(payload, crc32c(covered))
    head = MAGIC_AND_CRC.pack(MAGIC_V2, crc) + covered
    rewritten = header._replace(crc=crc, attributes=attributes, max_timestamp=max_timestamp)
    return CheckedBatch(rewritten, (head, payload), -1)


def _shorter_than_a_header(data: Buffer) -> ApiError:
    """The error for fewer bytes than a v2 header; Kafka distinguishes three cases."""
    error = _not_one_batch(data)
    if error.code is ErrorCode.INVALID_RECORD and _is_whole_v2_batch(data):
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"{len(data)} bytes do not hold a batch header")
    return error


def _is_whole_v2_batch(data: Buffer) -> bool:
    return (
        len(data) > MAGIC_POSITION
        and data[MAGIC_POSITION] == MAGIC_V2
        and _LENGTH.unpack_from(data, _LENGTH_AT)[0] + LOG_OVERHEAD == len(data)
    )


def _not_one_batch(data: Buffer) -> NotOneBatchError:
    """The error for data that is not one v2 batch. Kafka: ProduceRequest.validateRecords."""
    try:
        size = _first_batch_bytes(data)
        if size is None:
            return _no_batch("a produced partition must hold one whole record batch")
        if data[MAGIC_POSITION] != MAGIC_V2:
            return _no_batch(f"batches must have magic 2, not {data[MAGIC_POSITION]}")
        _first_batch_bytes(data[size:])
    except NotOneBatchError as error:
        return error
    return _no_batch("a produced partition must hold exactly one record batch")


def _first_batch_bytes(data: Buffer) -> int | None:
    """The size of the batch at the start of the data; None if there is no whole one.

    Raises NotOneBatchError if it cannot be a batch. Kafka: ByteBufferLogInputStream.
    """
    if len(data) < LOG_OVERHEAD:
        return None
    corrupt = partial(NotOneBatchError, ErrorCode.CORRUPT_MESSAGE)
    (batch_length,) = _LENGTH.unpack_from(data, _LENGTH_AT)
    if batch_length < _SMALLEST_LEGACY_BATCH_LENGTH:
        raise corrupt(f"batch length {batch_length} is too small")
    if len(data) <= MAGIC_POSITION:
        return None
    if data[MAGIC_POSITION] > MAGIC_V2:
        raise corrupt(f"magic {data[MAGIC_POSITION]} is not known")
    size: int = batch_length + LOG_OVERHEAD
    return size if size <= len(data) else None


_no_batch = partial(NotOneBatchError, ErrorCode.INVALID_RECORD)
