"""Reads and writes single records: the content of a v2 batch after decompression.

On disk and on the wire: never renumber. All integers are zigzag varints (primitives.py).

    length          of the rest of the record
    attributes      one byte, unused
    timestamp delta from the batch's base timestamp (up to 64 bits)
    offset delta    from the batch's base offset
    key length      -1: null, then the key
    value length    -1: null, then the value
    header count    then for each header: key length, key (UTF-8), value length (-1: null), value

If the batch has LogAppendTime, every record has the batch's max timestamp. A base timestamp of -1
means that the records have none. If two timestamps differ by more than 64 bits can hold, the delta
overflows like a Java long; the addition overflows again, so the result is right.

Two functions walk over the records with the same checks: `read_records` returns whole records,
`skim_records` only what validation needs (the package's docstring says why there are such pairs).
Both refuse a batch whose header has a wrong record count. Every length is checked before it is
used. Errors name the record and the byte.

Kafka: org.apache.kafka.common.record.internal.DefaultRecord.
"""

from collections.abc import Iterator
from typing import NamedTuple

from .batch_header import (
    HEADER_BYTES,
    BatchHeader,
    CorruptRecordError,
    TooManyRecordsError,
    read_header,
)
from .compression import (
    MAX_DECOMPRESSED_BYTES,
    NO_LIMIT,
    Buffer,
    DecompressionError,
    StreamTooLargeError,
    decompress,
)
from .primitives import read_varint, read_varlong, write_varint

RecordHeaders = tuple[tuple[str, bytes | None], ...]

# Length, attributes, two deltas, key length, value length, header count: one byte each.
SMALLEST_RECORD_BYTES = 7
MIN_INT64, MAX_INT64 = -(1 << 63), (1 << 63) - 1


class Record(NamedTuple):
    """One record. `offset` is set by readers and used for batches with gaps, else ignored."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: RecordHeaders = ()
    offset: int = 0


class RecordSkim(NamedTuple):
    """What validation needs of one record. `body_bytes`: without the length before it."""

    offset_delta: int
    timestamp_ms: int
    has_key: bool
    body_bytes: int


def read_records(
    batch: Buffer,
    *,
    header: BatchHeader | None = None,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[Record]:
    """The records of one complete batch. Keys and values are copies.

    Raises CorruptRecordError: at once if the batch cannot be decompressed, or while iterating.
    """
    header = header or read_header(batch)
    return read_payload(payload(batch, header, max_bytes), header)


def skim_records(
    batch: Buffer,
    *,
    header: BatchHeader | None = None,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> Iterator[RecordSkim]:
    """Walk over the records with the same checks, without copying keys, values and headers."""
    header = header or read_header(batch)
    return skim_payload(payload(batch, header, max_bytes), header)


def payload(
    batch: Buffer,
    header: BatchHeader,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
    max_parts: int = NO_LIMIT,
) -> bytes:
    """Return the decompressed bytes of a batch's records.

    Raises CorruptRecordError; its subclass TooManyRecordsError above the limits of `decompress`.
    """
    stored = memoryview(batch)[HEADER_BYTES : header.size_bytes]
    try:
        return decompress(header.compression, stored, max_bytes=max_bytes, max_parts=max_parts)
    except StreamTooLargeError as error:
        raise TooManyRecordsError(f"the batch at offset {header.base_offset}: {error}") from None
    except DecompressionError as error:
        raise CorruptRecordError(f"the batch at offset {header.base_offset}: {error}") from None


def append_record(out: bytearray, record: Record, timestamp_delta: int, offset_delta: int) -> None:
    """Append `record` to `out`, the uncompressed content of a batch."""
    if not MIN_INT64 <= timestamp_delta <= MAX_INT64:
        timestamp_delta = _wrapped(timestamp_delta)
    body = bytearray(1)
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    _append_nullable(body, record.key)
    _append_nullable(body, record.value)
    write_varint(body, len(record.headers))
    for name, value in record.headers:
        _append_nullable(body, name.encode())
        _append_nullable(body, value)
    write_varint(out, len(body))
    out += body


def _append_nullable(out: bytearray, data: bytes | None) -> None:
    if data is None:
        out.append(1)  # -1, zigzag-encoded
    else:
        write_varint(out, len(data))
        out += data


def read_payload(data: bytes, header: BatchHeader) -> Iterator[Record]:
    """Like `read_records`, for the bytes that `payload` returned."""
    # Most varints have one byte. They are decoded inline, because a call would cost more.
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    count = _checked_count(data, header)
    position = index = 0
    try:
        while index < count:
            end, position = _record_end(data, position)
            byte = data[position]
            if byte < 0x80:
                timestamp = base_timestamp + ((byte >> 1) ^ -(byte & 1))
                position += 1
            else:
                delta, position = _multibyte_varlong(data, position)
                timestamp = base_timestamp + delta
            byte = data[position]
            if byte < 0x80:
                offset = base_offset + ((byte >> 1) ^ -(byte & 1))
                position += 1
            else:
                delta, position = _multibyte_varint(data, position)
                offset = base_offset + delta
            key, position = _nullable(data, position, end)
            value, position = _nullable(data, position, end)
            headers: RecordHeaders = ()
            if data[position] == 0:
                position += 1
            else:
                headers, position = _headers(data, position, end)
            if position != end:
                raise _overrun(position, end)
            if append_time is not None:
                timestamp = append_time
            elif not MIN_INT64 <= timestamp <= MAX_INT64:
                timestamp = _wrapped(timestamp)
            index += 1
            yield Record(key, value, timestamp, headers, offset)
        _check_all_read(data, position)
    except (IndexError, ValueError) as error:
        raise _corrupt(header, index, position, error) from None


def skim_payload(
    data: bytes, header: BatchHeader, max_headers: int = NO_LIMIT
) -> Iterator[RecordSkim]:
    """Like `skim_records`, for the bytes that `payload` returned.

    Raises TooManyRecordsError if all records together have more than `max_headers` headers.
    """
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp if header.is_log_append_time else None
    count = _checked_count(data, header)
    position = index = 0
    try:
        while index < count:
            end, position = _record_end(data, position)
            start = position - 1  # at the attributes
            byte = data[position]
            if byte < 0x80:
                timestamp = base_timestamp + ((byte >> 1) ^ -(byte & 1))
                position += 1
            else:
                delta, position = _multibyte_varlong(data, position)
                timestamp = base_timestamp + delta
            byte = data[position]
            if byte < 0x80:
                offset_delta = (byte >> 1) ^ -(byte & 1)
                position += 1
            else:
                offset_delta, position = _multibyte_varint(data, position)
            has_key = not data[position] & 1  # the sign bit of the key's length
            position = _skip_nullable(data, position, end)
            position = _skip_nullable(data, position, end)
            if data[position] == 0:
                position += 1
            else:
                headers, _ = _header_count(data, position, end)
                max_headers -= headers
                if max_headers < 0:
                    raise TooManyRecordsError(f"record {index} has {headers} headers")
                position = skip_headers(data, position, end)
            if position != end:
                raise _overrun(position, end)
            if append_time is not None:
                timestamp = append_time
            elif not MIN_INT64 <= timestamp <= MAX_INT64:
                timestamp = _wrapped(timestamp)
            index += 1
            yield RecordSkim(offset_delta, timestamp, has_key, end - start)
        _check_all_read(data, position)
    except TooManyRecordsError:
        raise
    except (IndexError, ValueError) as error:
        raise _corrupt(header, index, position, error) from None


def _checked_count(data: bytes, header: BatchHeader) -> int:
    count = header.record_count
    if count < 0 or count * SMALLEST_RECORD_BYTES > len(data):
        raise CorruptRecordError(
            f"the batch at offset {header.base_offset} claims {count} records in {len(data)} bytes"
        )
    return count


def _wrapped(value: int) -> int:
    """The value after the overflow of a 64-bit integer."""
    return (value - MIN_INT64) % (1 << 64) + MIN_INT64


def _multibyte_varint(data: bytes, position: int) -> tuple[int, int]:
    """Read a varint of two or more bytes; most of these have two."""
    second = data[position + 1]
    if second < 0x80:
        raw = data[position] & 0x7F | second << 7
        return (raw >> 1) ^ -(raw & 1), position + 2
    return read_varint(data, position)


def _multibyte_varlong(data: bytes, position: int) -> tuple[int, int]:
    """Read a varlong (64 bits) of two or more bytes."""
    second = data[position + 1]
    if second < 0x80:
        raw = data[position] & 0x7F | second << 7
        return (raw >> 1) ^ -(raw & 1), position + 2
    return read_varlong(data, position)


def _record_end(data: bytes, position: int) -> tuple[int, int]:
    """The end of the record at `position`, and the position of its timestamp delta."""
    size = data[position]
    if size < 0x80:
        size = (size >> 1) ^ -(size & 1)
        position += 1
    else:
        size, position = _multibyte_varint(data, position)
    end = position + size
    if size < SMALLEST_RECORD_BYTES - 1 or end > len(data):
        raise ValueError(f"it claims {size} bytes, {len(data) - position} are left")
    return end, position + 1


def _nullable(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    size = data[position]
    position += 1
    if size < 0x80:
        size = (size >> 1) ^ -(size & 1)
    else:
        size, position = _multibyte_varint(data, position - 1)
    if size < 0:
        return None, position
    stop = position + size
    if stop > end:
        raise _too_long(size, position, end)
    return data[position:stop], stop


def _skip_nullable(data: bytes, position: int, end: int) -> int:
    size = data[position]
    if size < 0x80:
        size = (size >> 1) ^ -(size & 1)
        position += 1
    else:
        size, position = _multibyte_varint(data, position)
    if size < 0:
        return position
    if position + size > end:
        raise _too_long(size, position, end)
    return position + size


def _headers(data: bytes, position: int, end: int) -> tuple[RecordHeaders, int]:
    count, position = _header_count(data, position, end)
    headers = []
    for _ in range(count):
        name, position = _nullable(data, position, end)
        if name is None:
            raise _no_name()
        value, position = _nullable(data, position, end)
        # As in Java, invalid UTF-8 is replaced without an error.
        headers.append((name.decode("utf-8", "replace"), value))
    return tuple(headers), position


def skip_headers(data: bytes, position: int, end: int) -> int:
    """The position after a record's headers. Raises IndexError, ValueError."""
    count, position = _header_count(data, position, end)
    for _ in range(count):
        if data[position] & 1:
            raise _no_name()
        position = _skip_nullable(data, position, end)
        position = _skip_nullable(data, position, end)
    return position


def _header_count(data: bytes, position: int, end: int) -> tuple[int, int]:
    count, position = read_varint(data, position)
    if not 0 <= count <= end - position:
        raise ValueError(f"it claims {count} headers in {end - position} bytes")
    return count, position


def _check_all_read(data: bytes, position: int) -> None:
    if position != len(data):
        raise ValueError(f"{len(data) - position} bytes follow the last record")


def _no_name() -> ValueError:
    return ValueError("a header has no name")


def _overrun(position: int, end: int) -> ValueError:
    return ValueError(f"its content ends at byte {position}, by its length it ends at {end}")


def _too_long(size: int, position: int, end: int) -> ValueError:
    return ValueError(f"a field claims {size} bytes, {end - position} are left")


def _corrupt(
    header: BatchHeader, index: int, position: int, error: Exception
) -> CorruptRecordError:
    # An IndexError means that the bytes ended inside a varint. Its own text does not say so.
    why = "it ends too early" if isinstance(error, IndexError) else error
    return CorruptRecordError(
        f"record {index} of the batch at offset {header.base_offset}, near byte {position}: {why}"
    )
