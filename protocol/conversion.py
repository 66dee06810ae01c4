"""Between message sets (magic 0 and 1) and v2 batches, as brokers convert them for old clients.

Up, on Produce v0-2. What a client sent becomes one v2 batch with offsets from 0 on, no producer id,
and the codec it had; the log stamps LogAppendTime afterwards. Kafka's rules, which are kept:

    uncompressed messages, however many, become one batch
    a wrapper must be alone in its set; another message beside it is INVALID_RECORD
    all messages have the magic of the first, those in a wrapper included: INVALID_RECORD
    a checksum that is wrong, without or within: CORRUPT_MESSAGE
    a wrapper in a wrapper, an empty one, zstd or an unknown codec: INVALID_RECORD
    LogAppendTime from a client, where the topic has that or the message no time: INVALID_TIMESTAMP
    a last message that is cut off is trimmed

Down, on Fetch v0-3. Batches become messages with the offsets they have; what old formats have no
place for is lost: headers, producers, and with magic 0 the times. Control batches are left out, and
transactional records stay, aborted ones too. A batch of a low enough magic stays as it is. zstd is
refused with UNSUPPORTED_COMPRESSION_TYPE, unless something lies before it: then the client gets
that, and the error when it asks for the rest. Checksums are checked, which Kafka leaves out: the
new ones would hide what happened to the old bytes.

Kafka: LogValidator (4.3 still has the way up); RecordsUtil and LazyDownConversionRecords (3.9).
"""

import struct
from collections.abc import Iterable, Iterator

from .batch_header import (
    COMPRESSION_MASK,
    HEADER_BYTES,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    NO_TIMESTAMP,
    CorruptRecordError,
    TooManyRecordsError,
    check_crc,
    read_header,
)
from .compression import MAX_DECOMPRESSED_BYTES, NO_LIMIT, Buffer, CompressionType
from .errors import ApiError, ErrorCode
from .legacy import build_message_set, check_entry_crc, read_entries, read_message_set
from .message_set import SMALLEST_SIZES, InvalidRecordError, LegacyRecord
from .record import MAX_INT64, Record, read_records
from .record_batch import build_batch

MAX_INPUT_BYTES = 128 << 10  # what Kafka converts down in one step

_OFFSET = struct.Struct(">q")
_SIZE = struct.Struct(">i")
_SIZE_POSITION = 8
_ATTRIBUTES_POSITIONS = (17, 17, 22)  # by magic: the byte that names the codec


def convert_up(
    data: Buffer,
    *,
    compression: CompressionType | None = None,
    log_append_time: bool = False,
    max_message_bytes: int | None = None,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
    max_messages: int = NO_LIMIT,
) -> bytearray:
    """One v2 batch of a produced message set; empty when no whole message is in it.

    `compression` is that of the topic, None keeps the producer's. `log_append_time`: the topic has
    it. `max_message_bytes` bounds each message as it came; the batch is the log's to measure.
    `max_bytes` and `max_messages` are those of `read_message_set`.
    Raises ApiError with INVALID_RECORD, INVALID_TIMESTAMP or MESSAGE_TOO_LARGE, and
    CorruptRecordError where bytes are broken (CORRUPT_MESSAGE); its kind TooManyRecordsError.
    """
    try:
        codec = _checked_codec(data, max_message_bytes, max_messages)
        if codec is None:
            return bytearray()
        records = read_message_set(data, max_bytes=max_bytes, max_messages=max_messages)
        return build_batch(
            _as_v2(records, log_append_time=log_append_time),
            compression=codec if compression is None else compression,
        )
    except InvalidRecordError as error:
        raise ApiError(ErrorCode.INVALID_RECORD, str(error)) from None


def _checked_codec(
    data: Buffer, max_message_bytes: int | None, max_messages: int
) -> CompressionType | None:
    """The set's codec, when its outer messages are sound and go together; None of an empty set."""
    codec, magics = None, set()
    alone = True
    for entry in read_entries(data, max_messages=max_messages):
        if max_message_bytes is not None and entry.size_bytes > max_message_bytes:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a message of {entry.size_bytes} bytes is over {max_message_bytes}",
            )
        check_entry_crc(data, entry)
        magics.add(entry.magic)
        alone = codec is None
        codec = entry.compression or codec or CompressionType.NONE
    if codec and not alone:
        raise InvalidRecordError("a compressed message is not alone in its set")
    if len(magics) > 1:
        raise InvalidRecordError("messages of magic 0 and 1 are in one set")
    return codec


def _as_v2(records: Iterable[LegacyRecord], *, log_append_time: bool) -> Iterator[Record]:
    for index, record in enumerate(records):
        timestamp_ms = record.timestamp_ms
        if timestamp_ms < NO_TIMESTAMP:
            raise _invalid_time(f"record {index}: {timestamp_ms} is no timestamp")
        if record.is_log_append_time and (log_append_time or timestamp_ms == NO_TIMESTAMP):
            raise _invalid_time(f"record {index}: a producer may not set LogAppendTime")
        yield Record(record.key, record.value, timestamp_ms)


def _invalid_time(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_TIMESTAMP, message)


def convert_down(
    batches: Buffer,
    *,
    magic: int,
    first_offset: int,
    max_input_bytes: int = MAX_INPUT_BYTES,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
    max_records: int = NO_LIMIT,
) -> bytes:
    """Stored batches of any magic as a message set of magic 0 or 1, without a last one cut off.

    Records before `first_offset` are left out where their batch is not compressed: versions of
    librdkafka rely on it. Reading ends before the batch with which more than `max_input_bytes`
    would have been read, but not before there is a message. Empty when no batch holds any record.
    `max_bytes` is what one batch may unpack to, `max_records` what all v2 batches may hold.
    Raises ApiError with UNSUPPORTED_COMPRESSION_TYPE, CorruptRecordError; its kind
    TooManyRecordsError where the first batch with a message is above one of these.
    """
    view = memoryview(batches)
    out = bytearray()
    read_bytes = records = 0
    for batch in _split(view):
        read_bytes += len(batch)
        if out and (read_bytes > max_input_bytes or _is_zstd(batch)):
            break
        try:
            records += _record_count(batch)
            if records > max_records:
                raise TooManyRecordsError(f"{records} records are to be converted")
            out += _converted(batch, magic, first_offset, max_bytes)
        except TooManyRecordsError:
            if out:
                break
            raise
    return bytes(out)


def _record_count(batch: memoryview) -> int:
    """Of a v2 batch, as its header says; an older message counts as one, a wrapper too."""
    return read_header(batch).record_count if batch[MAGIC_POSITION] == MAGIC_V2 else 1


def _split(view: memoryview) -> Iterator[memoryview]:
    """Each whole batch, or message of an older magic."""
    position = 0
    while len(view) - position > MAGIC_POSITION:
        (size,) = _SIZE.unpack_from(view, position + _SIZE_POSITION)
        batch_magic = view[position + MAGIC_POSITION]
        if batch_magic > MAGIC_V2:
            raise CorruptRecordError(f"byte {position}: magic {batch_magic} is not known")
        if size < _smallest_size(batch_magic):
            raise CorruptRecordError(f"byte {position}: size {size} is too small")
        end = position + LOG_OVERHEAD + size
        if end > len(view):
            return
        yield view[position:end]
        position = end


def _smallest_size(batch_magic: int) -> int:
    return HEADER_BYTES - LOG_OVERHEAD if batch_magic == MAGIC_V2 else SMALLEST_SIZES[batch_magic]


def _converted(batch: memoryview, magic: int, first_offset: int, max_bytes: int) -> Buffer:
    if batch[MAGIC_POSITION] == MAGIC_V2:
        return _from_v2(batch, magic, first_offset, max_bytes)
    if _is_zstd(batch):
        raise _zstd_refused(batch)
    if batch[MAGIC_POSITION] <= magic:
        return batch
    compression = next(read_entries(batch)).compression
    records = (
        Record(each.key, each.value, NO_TIMESTAMP, (), each.offset)
        for each in read_message_set(batch, max_bytes=max_bytes)
    )
    return _rebuilt(records, magic, compression, first_offset)


def _from_v2(batch: memoryview, magic: int, first_offset: int, max_bytes: int) -> Buffer:
    header = read_header(batch)
    if header.is_control:
        return b""
    if _is_zstd(batch):
        raise _zstd_refused(batch)
    check_crc(batch, header)
    append_time = max(header.max_timestamp, NO_TIMESTAMP) if header.is_log_append_time else None
    records = read_records(batch, header=header, max_bytes=max_bytes)
    return _rebuilt(records, magic, header.compression, first_offset, append_time)


def _rebuilt(
    records: Iterable[Record],
    magic: int,
    compression: CompressionType,
    first_offset: int,
    log_append_time_ms: int | None = None,
) -> bytearray:
    kept_from = first_offset if compression is CompressionType.NONE else 0
    return build_message_set(
        _kept(records, kept_from),
        magic=magic,
        compression=compression,
        log_append_time_ms=log_append_time_ms,
    )


def _kept(records: Iterable[Record], first_offset: int) -> Iterator[Record]:
    """Those from `first_offset` on; a time that only v2 can have becomes none.

    The offsets are those of a producer's own bytes, which may not have been read until now.
    """
    last_offset = -1
    for index, record in enumerate(records):
        if not last_offset < record.offset <= MAX_INT64:
            raise CorruptRecordError(
                f"record {index}: offset {record.offset} does not follow {last_offset}"
            )
        last_offset = record.offset
        if last_offset >= first_offset:
            yield record._replace(timestamp_ms=max(record.timestamp_ms, NO_TIMESTAMP))


def _is_zstd(batch: memoryview) -> bool:
    at = _ATTRIBUTES_POSITIONS[batch[MAGIC_POSITION]]
    return batch[at] & COMPRESSION_MASK == CompressionType.ZSTD


def _zstd_refused(batch: memoryview) -> ApiError:
    (offset,) = _OFFSET.unpack_from(batch)
    return ApiError(
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        f"the batch at offset {offset} is compressed with zstd, which old clients cannot read",
    )
