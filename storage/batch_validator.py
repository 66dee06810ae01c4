"""What a batch must satisfy before a client may append it, and what the broker rewrites in it.

The header is checked for every batch, in the order in which Kafka finds the same faults
(ProduceRequest.validateRecords, UnifiedLog.analyzeAndValidateRecords, LogValidator); base offset
and leader epoch, which are assigned later, lie outside the CRC, so the client's bytes are written
as they came. Records are read one by one only where an answer depends on them: compacted topics
refuse records without a key, `message.timestamp.before.max.ms` bounds the oldest record, another
`compression.type` than the producer's rebuilds the batch, and `odradek.validate.records=full`
asks for it. Kafka reads the records of every batch: a batch whose header is sound and whose
records are not is refused there and kept here, unless one of these asked.

Three things are rewritten: a topic with LogAppendTime gets the broker's time into the header
(one new CRC, records untouched), a walked batch whose header lies about its newest timestamp is
corrected, and a foreign compression type means a new batch.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import crc32c

from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import (
    CHECKED_POSITION,
    COMPRESSION_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    BatchHeader,
    CorruptRecordError,
    batch_crc,
    read_header,
)
from odradek.protocol.compression import Buffer, CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import (
    SMALLEST_RECORD_BYTES,
    Record,
    RecordSkim,
    read_records,
    skim_records,
)
from odradek.protocol.record_batch import build_batch

# The header behind the 16 bytes that the log makes: magic and CRC, then what the CRC covers.
_MAGIC_AND_CRC = struct.Struct(">bI")
_COVERED_HEADER = struct.Struct(">hiqqqhii")
_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
_SMALLEST_LEGACY_BATCH_LENGTH = 14
_ERRORS_SHOWN = 3


class RecordsRefusedError(ApiError):
    """Single records of a batch are at fault; Produce v8 and later names each (KIP-467)."""

    def __init__(self, code: ErrorCode, message: str, records: Sequence[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.record_errors = tuple(records)


class CheckedBatch(NamedTuple):
    """A batch that may be written: the header to keep books by, and the bytes behind `assigned`.

    `parts` are consecutive bytes from the magic byte on; the first 16 bytes are the log's to make.
    """

    header: BatchHeader
    parts: tuple[Buffer, ...]
    log_append_time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendRules:
    """The topic's settings that appending asks for, as plain values."""

    max_message_bytes: int
    compression: CompressionType | None  # None keeps what the producer chose
    compression_level: int | None  # None: the codec's default
    log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    compacted: bool
    read_records: bool

    @classmethod
    def of(cls, config: TopicConfig, *, validate_records: bool = False) -> "AppendRules":
        """The rules of one topic; `validate_records` reads the records of every batch."""
        compacted = config.compact
        compression, compression_level = target_compression(config)
        before_max_ms = config.message_timestamp_before_max_ms
        log_append_time = config.message_timestamp_type == "LogAppendTime"
        return cls(
            max_message_bytes=config.max_message_bytes,
            compression=compression,
            compression_level=compression_level,
            log_append_time=log_append_time,
            timestamp_before_max_ms=before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            compacted=compacted,
            read_records=validate_records
            or compacted
            or (before_max_ms < _NO_BOUND_MS and not log_append_time),
        )


_NO_BOUND_MS = 2**63 - 1
_COMPRESSION_NAMES = {
    "producer": None,
    "uncompressed": CompressionType.NONE,
    "gzip": CompressionType.GZIP,
    "snappy": CompressionType.SNAPPY,
    "lz4": CompressionType.LZ4,
    "zstd": CompressionType.ZSTD,
}


def target_compression(config: TopicConfig) -> tuple[CompressionType | None, int | None]:
    """The codec of a topic's batches and its level; (None, None) where producers choose."""
    target = _COMPRESSION_NAMES[config.compression_type]
    levels = {
        CompressionType.GZIP: config.compression_gzip_level,
        CompressionType.LZ4: config.compression_lz4_level,
        CompressionType.ZSTD: config.compression_zstd_level,
    }
    return target, None if target is None else levels.get(target)


def check_client_batch(data: Buffer, rules: AppendRules, now_ms: int) -> CheckedBatch:
    """Check what a client wants to append: exactly one v2 batch, of the length of `data`.

    Raises ApiError with INVALID_RECORD, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE or INVALID_TIMESTAMP;
    RecordsRefusedError where single records are at fault.
    """
    if len(data) < HEADER_BYTES:
        raise _shorter_than_a_header(data)
    header = read_header(data)
    if header.magic != MAGIC_V2 or header.batch_length + LOG_OVERHEAD != len(data):
        raise _not_one_batch(data)
    if header.base_offset:
        raise _invalid(f"the base offset of a produced batch must be 0, not {header.base_offset}")
    if len(data) > rules.max_message_bytes:
        raise _too_large(len(data), rules)
    view = memoryview(data)
    if crc32c.crc32c(view[CHECKED_POSITION:]) != header.crc:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, f"the batch does not match its CRC {header.crc}")
    _check_header(header, rules, now_ms)
    if rules.read_records or _other_compression(header, rules):
        return _check_records(view, header, rules, now_ms)
    if rules.log_append_time:
        return _stamped(view, header, now_ms)
    return CheckedBatch(header, (view[PREFIX_BYTES:],), -1)


def split_batches(
    data: Buffer, rules: AppendRules, *, check_crc: bool
) -> list[tuple[BatchHeader, tuple[Buffer, ...]]]:
    """The batches that this broker made, or that were stored before, with their bytes from 16 on.

    Raises ApiError with INVALID_RECORD, CORRUPT_MESSAGE or MESSAGE_TOO_LARGE.
    """
    view = memoryview(data)
    batches: list[tuple[BatchHeader, tuple[Buffer, ...]]] = []
    position = 0
    while position < len(view) or not batches:
        if len(view) - position < HEADER_BYTES:
            raise _shorter_than_a_header(view[position:])
        header = read_header(view, position)
        batch = view[position : position + header.size_bytes]
        if header.magic != MAGIC_V2 or len(batch) != header.size_bytes:
            raise _not_one_batch(batch)
        if len(batch) > rules.max_message_bytes and not check_crc:
            raise _too_large(len(batch), rules)
        if check_crc and batch_crc(batch) != header.crc:
            raise ApiError(
                ErrorCode.CORRUPT_MESSAGE, f"a batch does not match its CRC {header.crc}"
            )
        batches.append((header, (batch[PREFIX_BYTES:],)))
        position += len(batch)
    return batches


def _check_header(header: BatchHeader, rules: AppendRules, now_ms: int) -> None:
    count = header.record_count
    if count <= 0 or header.last_offset_delta + 1 != count:
        raise _invalid(f"{count} records do not span offsets 0 to {header.last_offset_delta}")
    attributes = header.attributes
    if attributes:
        _check_attributes(header)
    if (
        attributes & COMPRESSION_MASK == 0
        and count * SMALLEST_RECORD_BYTES > header.size_bytes - HEADER_BYTES
    ):
        raise _invalid(f"{count} records do not fit into {header.size_bytes} bytes")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise _invalid(
            f"sequence number {header.base_sequence} of producer id {header.producer_id}"
        )
    if header.max_timestamp - now_ms > rules.timestamp_after_max_ms and not rules.log_append_time:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {header.max_timestamp} is later than now ({now_ms}) plus "
            f"message.timestamp.after.max.ms ({rules.timestamp_after_max_ms})",
        )


def _check_attributes(header: BatchHeader) -> None:
    if header.attributes & COMPRESSION_MASK > CompressionType.ZSTD:
        raise _invalid(f"compression type {header.attributes & COMPRESSION_MASK} is not known")
    if header.is_control:
        raise _invalid("clients may not write control batches")
    if header.is_log_append_time:
        raise ApiError(
            ErrorCode.INVALID_TIMESTAMP, "a producer may not set the timestamp type LogAppendTime"
        )


def _other_compression(header: BatchHeader, rules: AppendRules) -> bool:
    return (
        rules.compression is not None and header.attributes & COMPRESSION_MASK != rules.compression
    )


def _check_records(
    data: memoryview, header: BatchHeader, rules: AppendRules, now_ms: int
) -> CheckedBatch:
    try:
        skims = list(skim_records(data, header=header))
        _refuse_single_records(skims, rules, now_ms)
        consecutive = all(skim.offset_delta == index for index, skim in enumerate(skims))
        compressed = header.attributes & COMPRESSION_MASK != CompressionType.NONE
        if _other_compression(header, rules) or (compressed and not consecutive):
            return _rebuilt(list(read_records(data, header=header)), header, rules, now_ms)
    except CorruptRecordError as error:
        raise _invalid(str(error)) from error
    if rules.log_append_time:
        return _stamped(data, header, now_ms)
    newest_ms = max(skim.timestamp_ms for skim in skims)
    if newest_ms != header.max_timestamp:
        return _with_max_timestamp(data, header, header.attributes, newest_ms)
    return CheckedBatch(header, (data[PREFIX_BYTES:],), -1)


def _refuse_single_records(skims: Sequence[RecordSkim], rules: AppendRules, now_ms: int) -> None:
    errors = []
    code = ErrorCode.INVALID_RECORD
    for index, skim in enumerate(skims):
        if rules.compacted and not skim.has_key:
            errors.append((index, "a compacted topic takes no record without a key"))
        elif not rules.log_append_time and _is_out_of_bounds(skim.timestamp_ms, rules, now_ms):
            code = ErrorCode.INVALID_TIMESTAMP
            errors.append((index, f"timestamp {skim.timestamp_ms} is out of bounds at {now_ms}"))
    if errors:
        shown = "; ".join(f"record {index}: {text}" for index, text in errors[:_ERRORS_SHOWN])
        message = f"{len(errors)} of {len(skims)} records: {shown}"
        raise RecordsRefusedError(code, message, errors)


def _is_out_of_bounds(timestamp_ms: int, rules: AppendRules, now_ms: int) -> bool:
    age_ms = now_ms - timestamp_ms
    return timestamp_ms != NO_TIMESTAMP and (
        age_ms > rules.timestamp_before_max_ms or -age_ms > rules.timestamp_after_max_ms
    )


def _rebuilt(
    records: Sequence[Record], header: BatchHeader, rules: AppendRules, now_ms: int
) -> CheckedBatch:
    """The same records in a new batch, as the topic wants them compressed."""
    log_append_time_ms = now_ms if rules.log_append_time else None
    compression = header.compression if rules.compression is None else rules.compression
    batch = build_batch(
        records,
        compression=compression,
        compression_level=rules.compression_level,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        log_append_time_ms=log_append_time_ms,
    )
    if len(batch) > rules.max_message_bytes:
        raise _too_large(len(batch), rules)
    view = memoryview(batch)
    stamp_ms = -1 if log_append_time_ms is None else log_append_time_ms
    return CheckedBatch(read_header(view), (view[PREFIX_BYTES:],), stamp_ms)


def _stamped(data: memoryview, header: BatchHeader, now_ms: int) -> CheckedBatch:
    """The client's records under a header that carries the broker's time."""
    attributes = header.attributes | LOG_APPEND_TIME_BIT
    return _with_max_timestamp(data, header, attributes, now_ms)._replace(log_append_time_ms=now_ms)


def _with_max_timestamp(
    data: memoryview, header: BatchHeader, attributes: int, max_timestamp: int
) -> CheckedBatch:
    payload = data[HEADER_BYTES:]
    covered = _COVERED_HEADER.pack(
        attributes,
        header.last_offset_delta,
        header.base_timestamp,
        max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.record_count,
    )
    crc = crc32c.crc32c(payload, crc32c.crc32c(covered))
    head = _MAGIC_AND_CRC.pack(MAGIC_V2, crc) + covered
    rewritten = header._replace(crc=crc, attributes=attributes, max_timestamp=max_timestamp)
    return CheckedBatch(rewritten, (head, payload), -1)


def _shorter_than_a_header(data: Buffer) -> ApiError:
    """What is wrong with fewer bytes than a v2 header: Kafka tells three faults apart."""
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


def _not_one_batch(data: Buffer) -> ApiError:
    """Why `data` is not exactly one v2 batch, as Kafka would find it (ByteBufferLogInputStream)."""
    if len(data) < LOG_OVERHEAD:
        return _invalid("a produced partition must hold one record batch")
    (batch_length,) = _LENGTH.unpack_from(data, _LENGTH_AT)
    if batch_length < _SMALLEST_LEGACY_BATCH_LENGTH:
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"batch length {batch_length} is too small")
    if len(data) <= MAGIC_POSITION:
        return _invalid("a produced partition must hold one record batch")
    magic = data[MAGIC_POSITION]
    if magic > MAGIC_V2:
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"magic {magic} is not known")
    if batch_length + LOG_OVERHEAD > len(data):
        return _invalid(f"{len(data)} bytes hold no batch of {batch_length + LOG_OVERHEAD}")
    if magic < MAGIC_V2:
        return _invalid(f"batches must have magic 2, not {magic}")
    return _invalid("a produced partition must hold exactly one record batch")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, message)


def _too_large(size_bytes: int, rules: AppendRules) -> ApiError:
    return ApiError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"a batch of {size_bytes} bytes is over max.message.bytes ({rules.max_message_bytes})",
    )
