"""Converts between message sets (magic 0 and 1) and v2 batches, for old clients.

**Up-conversion**, for Produce v0-2. A message set becomes one v2 batch with offsets from 0, no
producer id, and the same codec. The log sets LogAppendTime later. The rules are Kafka's:

- All uncompressed messages of a set become one batch.
- A wrapper must be the only message of its set, else INVALID_RECORD.
- All messages must have the magic of the first, also those in a wrapper, else INVALID_RECORD.
- A wrong checksum, outside or inside a wrapper, is CORRUPT_MESSAGE.
- A wrapper in a wrapper, an empty wrapper, zstd and an unknown codec are INVALID_RECORD.
- LogAppendTime set by a client is INVALID_TIMESTAMP, if the topic has LogAppendTime or the message
  has no timestamp.
- An incomplete last message is dropped.

**Down-conversion**, for Fetch v0-3. Batches become messages with the same offsets. What old formats
cannot store is lost: headers, producers, and with magic 0 the timestamps. Control batches are left
out. Transactional records are kept, also aborted ones. A batch whose magic is low enough is not
converted. A zstd batch is refused with UNSUPPORTED_COMPRESSION_TYPE. If batches precede it, the
client gets those, and the error when it asks for the rest.

Checksums are verified before conversion, which Kafka does not do. The converted messages get new
checksums, which would hide that the old bytes were damaged.

Kafka: LogValidator (4.3 still converts up); RecordsUtil and LazyDownConversionRecords (3.9).
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

MAX_INPUT_BYTES = 128 << 10  # Kafka's limit for one step of down-conversion

_OFFSET = struct.Struct(">q")
_SIZE = struct.Struct(">i")
_SIZE_POSITION = 8
_ATTRIBUTES_POSITIONS = (17, 17, 22)  # by magic: the byte with the codec's id


def convert_up(
    data: Buffer,
    *,
    compression: CompressionType | None = None,
    log_append_time: bool = False,
    max_message_bytes: int | None = None,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
    max_messages: int = NO_LIMIT,
) -> bytearray:
    """Convert a produced message set to one v2 batch; empty if the set has no complete message.

    `compression` is the topic's codec; if it is None, the producer's is kept. `log_append_time`:
    whether the topic uses LogAppendTime. `max_message_bytes` limits each message as sent; the log
    checks the size of the batch. `max_bytes` and `max_messages` are those of `read_message_set`.
    Raises ApiError with INVALID_RECORD, INVALID_TIMESTAMP or MESSAGE_TOO_LARGE, and
    CorruptRecordError for damaged bytes (CORRUPT_MESSAGE); its subclass TooManyRecordsError.
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
    """Check the outer messages of a set; returns their codec, or None for an empty set."""
    codec, magics = None, set()
    alone = True
    for entry in read_entries(data, max_messages=max_messages):
        if max_message_bytes is not None and entry.size_bytes > max_message_bytes:
            raise ApiError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"a message of {entry.size_bytes} bytes is larger than {max_message_bytes}",
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
            raise _invalid_time(f"record {index}: {timestamp_ms} is not a timestamp")
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
    """Convert stored batches of any magic to a message set of magic 0 or 1.

    An incomplete last batch is ignored. Records before `first_offset` are left out of uncompressed
    batches, because some versions of librdkafka rely on it. The conversion stops before the batch
    that would exceed `max_input_bytes`, but never before the first message. The result is empty if
    no batch has a record. `max_bytes` limits the unpacked size of one batch, `max_records` the
    records of all v2 batches.
    Raises ApiError with UNSUPPORTED_COMPRESSION_TYPE, and CorruptRecordError; its kind
    TooManyRecordsError if the first batch with a message exceeds a limit.
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
    """Return the number of records of a v2 batch. An older message or wrapper counts as one."""
    return read_header(batch).record_count if batch[MAGIC_POSITION] == MAGIC_V2 else 1


def _split(view: memoryview) -> Iterator[memoryview]:
    """The complete batches and messages of any magic, one by one."""
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
    return _as_message_set(records, magic, compression, first_offset)


def _from_v2(batch: memoryview, magic: int, first_offset: int, max_bytes: int) -> Buffer:
    header = read_header(batch)
    if header.is_control:
        return b""
    if _is_zstd(batch):
        raise _zstd_refused(batch)
    check_crc(batch, header)
    append_time = max(header.max_timestamp, NO_TIMESTAMP) if header.is_log_append_time else None
    records = read_records(batch, header=header, max_bytes=max_bytes)
    return _as_message_set(records, magic, header.compression, first_offset, append_time)


def _as_message_set(
    records: Iterable[Record],
    magic: int,
    compression: CompressionType,
    first_offset: int,
    log_append_time_ms: int | None = None,
) -> bytearray:
    first_kept = first_offset if compression is CompressionType.NONE else 0
    return build_message_set(
        _records_from(records, first_kept),
        magic=magic,
        compression=compression,
        log_append_time_ms=log_append_time_ms,
    )


def _records_from(records: Iterable[Record], first_offset: int) -> Iterator[Record]:
    """The records from `first_offset` on. Timestamps below -1, which only v2 allows, become -1.

    The offsets are checked here: they are a producer's bytes, which nobody may have parsed before.
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
    position = _ATTRIBUTES_POSITIONS[batch[MAGIC_POSITION]]
    return batch[position] & COMPRESSION_MASK == CompressionType.ZSTD


def _zstd_refused(batch: memoryview) -> ApiError:
    (offset,) = _OFFSET.unpack_from(batch)
    return ApiError(
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        f"the batch at offset {offset} is compressed with zstd, which old clients cannot read",
    )
