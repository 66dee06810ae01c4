"""Reads message sets, Kafka's record format before 0.11: magic 0, and magic 1 since 0.10.

On disk and on the wire: never renumber.

    at  size  field
     0     8  offset
     8     4  size            the number of bytes after this field
    12     4  CRC-32          covers all bytes from 16 on
    16     1  magic           0 or 1 (at this position in every format)
    17     1  attributes      bits 0-2 compression; with magic 1 bit 3: LogAppendTime
    18     8  timestamp       with magic 1 only; -1: none
     .     4  key size        negative: null; then the key
     .     4  value size      negative: null; then the value

A set is a sequence of such messages without a frame. In a Fetch response the last one may be cut
off. Compression puts a whole set into the value of one message, the wrapper. It is not nested:

    magic 0   the messages inside have their own offsets
    magic 1   the messages inside have the offsets 0, 1, 2, …, and the wrapper has the offset of the
              last one (KIP-31). Some versions of librdkafka send a wrapper with offset 0; then the
              inner offsets are used unchanged.
              The timestamp of a wrapper with LogAppendTime applies to all messages inside (KIP-32).

zstd is not allowed, and the messages inside must have the magic of the wrapper. LZ4 with magic 0
has a wrong checksum: see lz4_header.py. All fields are checked; errors name the message and the
byte at which it begins.

Kafka: LegacyRecord, AbstractLegacyRecordBatch, ByteBufferLogInputStream.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from .batch_header import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    NO_TIMESTAMP,
    CorruptRecordError,
    TooManyRecordsError,
)
from .compression import (
    NO_LIMIT,
    Buffer,
    CompressionType,
    DecompressionError,
    StreamTooLargeError,
    decompress,
)
from .lz4_header import with_right_checksum
from .record import MAX_INT64, MIN_INT64

MAGIC_V0 = 0
MAGIC_V1 = 1

# By magic, the smallest size field: CRC, magic, attributes, timestamp, key size, value size.
SMALLEST_SIZES = (14, 22)
LARGEST_SIZE = 0x7FFFFFFF - LOG_OVERHEAD  # a whole message is smaller than 2 GiB
_CONTENT_POSITIONS = (18, 26)
_HEAD = struct.Struct(">qiIBB")
_SIZE = struct.Struct(">i")
_TIMESTAMP = struct.Struct(">q")
_SIZE_POSITION = 8


class InvalidRecordError(CorruptRecordError):
    """The bytes are intact but not allowed in a message set. Kafka: InvalidRecordException."""


class LegacyRecord(NamedTuple):
    """One record of a message set, with its final offset and timestamp."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int  # NO_TIMESTAMP with magic 0
    offset: int
    magic: int
    is_log_append_time: bool


class Entry(NamedTuple):
    """The head of one message of a set: a single record, or a wrapper."""

    number: int  # in its set, from 0
    position: int
    offset: int
    size_bytes: int  # of the whole message, including offset and size
    crc: int
    magic: int
    attributes: int
    timestamp_ms: int  # NO_TIMESTAMP with magic 0

    @property
    def is_compressed(self) -> bool:
        return self.attributes & COMPRESSION_MASK != 0

    @property
    def compression(self) -> CompressionType:
        """The codec. Raises InvalidRecordError for zstd and for the unknown ids 5 to 7."""
        codec = self.attributes & COMPRESSION_MASK
        if codec > CompressionType.LZ4:
            raise InvalidRecordError(
                f"message {self.number} at byte {self.position}: compression id {codec} "
                f"is not allowed with magic {self.magic}"
            )
        return CompressionType(codec)

    @property
    def is_log_append_time(self) -> bool:
        return self.magic > MAGIC_V0 and self.attributes & LOG_APPEND_TIME_BIT != 0


class MessageSet:
    """The bytes of one set: an outer set, or the content of a wrapper.

    `place` is the beginning of its error messages. Its walks raise TooManyRecordsError when there
    are more than `max_messages`.
    """

    __slots__ = ("_data", "_max_messages", "_place")

    def __init__(self, data: Buffer, place: str, max_messages: int = NO_LIMIT) -> None:
        self._data = data
        self._place = place
        self._max_messages = max_messages

    def entries(self, *, whole: bool) -> Iterator[Entry]:
        position = number = 0
        while (entry := self._entry(number, position)) is not None:
            if number >= self._max_messages:
                raise TooManyRecordsError(f"{self._place}more than {number} messages")
            yield entry
            position += entry.size_bytes
            number += 1
        if whole and position != len(self._data):
            raise self._corrupt(number, position, "it is cut off")

    def _entry(self, number: int, position: int) -> Entry | None:
        """Return the head of the message at `position`, or None if the message is cut off."""
        data = self._data
        left = len(data) - position
        if left < LOG_OVERHEAD:
            return None
        (size,) = _SIZE.unpack_from(data, position + _SIZE_POSITION)
        if size < SMALLEST_SIZES[MAGIC_V0]:
            raise self._corrupt(number, position, f"size {size} is too small")
        if left <= MAGIC_POSITION:
            return None
        self._check_magic(number, position, size)
        if size > left - LOG_OVERHEAD:
            if size > LARGEST_SIZE:
                raise self._corrupt(number, position, f"size {size} is too large")
            return None
        offset, size, crc, magic, attributes = _HEAD.unpack_from(data, position)
        timestamp_ms = NO_TIMESTAMP
        if magic > MAGIC_V0:
            (timestamp_ms,) = _TIMESTAMP.unpack_from(data, position + _HEAD.size)
        size_bytes = LOG_OVERHEAD + size
        return Entry(number, position, offset, size_bytes, crc, magic, attributes, timestamp_ms)

    def _check_magic(self, number: int, position: int, size: int) -> None:
        magic = self._data[position + MAGIC_POSITION]
        if magic > MAGIC_V2:
            raise self._corrupt(number, position, f"magic {magic} is not known")
        if magic == MAGIC_V2:
            raise self._invalid(number, position, "a batch of magic 2 is not a message")
        if size < SMALLEST_SIZES[magic]:
            raise self._corrupt(number, position, f"size {size} is too small for magic {magic}")

    def check_crc(self, entry: Entry) -> None:
        end = entry.position + entry.size_bytes
        computed = zlib.crc32(memoryview(self._data)[entry.position + MAGIC_POSITION : end])
        if computed != entry.crc:
            why = f"stored CRC {entry.crc:#010x}, computed {computed:#010x}"
            raise self._corrupt(entry.number, entry.position, why)

    def record(self, entry: Entry) -> LegacyRecord:
        key, value = self._content(entry)
        return LegacyRecord(
            None if key is None else bytes(key),
            None if value is None else bytes(value),
            entry.timestamp_ms,
            entry.offset,
            entry.magic,
            entry.is_log_append_time,
        )

    def _content(self, entry: Entry) -> tuple[Buffer | None, Buffer | None]:
        """Key and value. Bytes after the value are ignored, as in Kafka."""
        position = entry.position + _CONTENT_POSITIONS[entry.magic]
        key, position = self._delimited(entry, position)
        value, _ = self._delimited(entry, position)
        return key, value

    def _delimited(self, entry: Entry, position: int) -> tuple[Buffer | None, int]:
        left = entry.position + entry.size_bytes - position - _SIZE.size
        if left < 0:
            raise self._corrupt(entry.number, entry.position, "no room is left for its value")
        (size,) = _SIZE.unpack_from(self._data, position)
        position += _SIZE.size
        if size < 0:
            return None, position
        if size > left:
            why = f"a field claims {size} bytes, {left} are left"
            raise self._corrupt(entry.number, entry.position, why)
        return self._data[position : position + size], position + size

    def opened(self, wrapper: Entry, max_bytes: int) -> "MessageSet":
        """The set inside the wrapper, decompressed. Each compressed part counts as a message."""
        codec = wrapper.compression
        _, value = self._content(wrapper)
        if value is None:
            raise self._invalid(wrapper.number, wrapper.position, "a wrapper without a value")
        if codec is CompressionType.LZ4 and wrapper.magic == MAGIC_V0:
            value = with_right_checksum(value)
        try:
            inside = decompress(codec, value, max_bytes=max_bytes, max_parts=self._max_messages)
        except StreamTooLargeError as error:
            place = f"{self._place}message {wrapper.number} at byte {wrapper.position}"
            raise TooManyRecordsError(f"{place}: {error}") from None
        except DecompressionError as error:
            raise self._corrupt(wrapper.number, wrapper.position, error) from None
        place = f"message {wrapper.number} at byte {wrapper.position}, inside: "
        return MessageSet(inside, place, self._max_messages)

    def base_offset(self, wrapper: Entry, *, whole: bool) -> int:
        """The number to add to the offsets inside. All messages inside are read for it."""
        last = None
        for entry in self.entries(whole=whole):
            last = entry
        if last is None:
            raise self._invalid(0, 0, "the wrapper holds no message")
        if wrapper.magic == MAGIC_V0 or wrapper.offset == 0:
            return 0
        if wrapper.offset < last.offset:
            why = f"its offset {last.offset} is above the wrapper's, {wrapper.offset}"
            raise self._invalid(last.number, last.position, why)
        return wrapper.offset - last.offset

    def check_inside(self, entry: Entry, wrapper: Entry) -> None:
        if entry.magic != wrapper.magic:
            why = f"magic {entry.magic} in a wrapper of magic {wrapper.magic}"
            raise self._invalid(entry.number, entry.position, why)
        if entry.is_compressed:
            raise self._invalid(entry.number, entry.position, "compressed in a wrapper")

    def record_inside(self, entry: Entry, wrapper: Entry, base_offset: int) -> LegacyRecord:
        offset = base_offset + entry.offset
        if not MIN_INT64 <= offset <= MAX_INT64:
            why = f"its offset {offset} does not fit 64 bits"
            raise self._invalid(entry.number, entry.position, why)
        stamped = wrapper.is_log_append_time
        timestamp_ms = wrapper.timestamp_ms if stamped else entry.timestamp_ms
        return self.record(entry)._replace(
            offset=offset, timestamp_ms=timestamp_ms, is_log_append_time=stamped
        )

    def _corrupt(self, number: int, position: int, why: object) -> CorruptRecordError:
        return CorruptRecordError(f"{self._place}message {number} at byte {position}: {why}")

    def _invalid(self, number: int, position: int, why: str) -> InvalidRecordError:
        return InvalidRecordError(f"{self._place}message {number} at byte {position}: {why}")
