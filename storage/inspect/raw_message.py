"""Reads one stored message of magic 0 or 1 for inspection, also a damaged one.

protocol/message_set.py draws the layout, and explains how the wrapper of compressed messages gives
them their offsets and times. The reader there refuses a message that is damaged anywhere. Here each
part is parsed when it is asked for, and only a part that is itself damaged raises UnreadableError.

Integers overflow as in Java.

Kafka: LegacyRecord, AbstractLegacyRecordBatch.DeepRecordsIterator.
"""

import struct
import zlib
from collections.abc import Iterator

from odradek.protocol.batch_header import COMPRESSION_MASK, LOG_APPEND_TIME_BIT, NO_TIMESTAMP
from odradek.protocol.compression import (
    CompressionType,
    DecompressionError,
    StreamTooLargeError,
    decompress,
)
from odradek.protocol.lz4_header import with_right_checksum

SMALLEST_SIZE = 14  # of a message of magic 0, without the offset and size before it
OFFSET_AND_SIZE = struct.Struct(">qi")
_HEAD = struct.Struct(">IbB")  # CRC, magic, attributes
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class UnreadableError(Exception):
    """The rest of a file, or a part of a message, cannot be parsed; the text says why."""


class TooLargeError(UnreadableError):
    """Compressed records hold more bytes than the caller allows; they may be sound."""


class RawMessage:
    """One message of magic 0 or 1, or the wrapper of compressed ones. `data` begins at the CRC.

    Every property may raise UnreadableError. `stamp_ms` is the wrapper's timestamp, given where it
    overrides the message's own.
    """

    __slots__ = ("_data", "_stamp_ms", "offset")

    def __init__(self, offset: int, data: bytes, stamp_ms: int | None = None) -> None:
        self.offset = offset
        self._data = data
        self._stamp_ms = stamp_ms

    @property
    def crc(self) -> int:
        return self._head()[0]

    @property
    def magic(self) -> int:
        return self._head()[1]

    @property
    def attributes(self) -> int:
        return self._head()[2]

    @property
    def is_valid(self) -> bool:
        """Whether the stored CRC matches the bytes."""
        return len(self._data) >= SMALLEST_SIZE and self.crc == zlib.crc32(self._data[4:])

    @property
    def is_log_append_time(self) -> bool:
        return self.magic != 0 and self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def compression(self) -> CompressionType:
        return codec_of(self.attributes)

    @property
    def timestamp_ms(self) -> int:
        if self.magic == 0:
            return NO_TIMESTAMP
        return self._int(_INT64, 6) if self._stamp_ms is None else self._stamp_ms

    @property
    def key_size(self) -> int:
        """As stored, in bytes; negative for a null key."""
        return self._int(_INT32, self._key_at)

    @property
    def value_size(self) -> int:
        """As stored, in bytes; negative for a null value."""
        return self._int(_INT32, self._value_at)

    @property
    def key(self) -> bytes | None:
        return self._delimited(self._key_at)

    @property
    def value(self) -> bytes | None:
        return self._delimited(self._value_at)

    @property
    def _key_at(self) -> int:
        return 6 if self.magic == 0 else 14

    @property
    def _value_at(self) -> int:
        return self._key_at + 4 + max(0, self.key_size)

    def _head(self) -> tuple[int, int, int]:
        if len(self._data) < _HEAD.size:
            raise UnreadableError(f"the message at offset {self.offset} ends inside its head")
        crc, magic, attributes = _HEAD.unpack_from(self._data)
        return crc, magic, attributes

    def _int(self, number: struct.Struct, at: int) -> int:
        if at + number.size > len(self._data):
            raise UnreadableError(f"the message at offset {self.offset} ends before its byte {at}")
        value: int = number.unpack_from(self._data, at)[0]
        return value

    def _delimited(self, at: int) -> bytes | None:
        size = self._int(_INT32, at)
        at += _INT32.size
        if size > len(self._data) - at:
            raise UnreadableError(
                f"a field of the message at offset {self.offset} claims {size} bytes, "
                f"{len(self._data) - at} are left"
            )
        return None if size < 0 else self._data[at : at + size]

    def inside(self, max_bytes: int) -> "Iterator[RawMessage]":
        """Yields the messages of a wrapper, which hold at most `max_bytes`.

        Raises UnreadableError: before the first message if the set as a whole is damaged.
        """
        wrapper_magic, stamped = self.magic, self.is_log_append_time
        entries = list(self._entries(self._decompressed(max_bytes)))
        if not entries:
            raise UnreadableError(f"the wrapper at offset {self.offset} holds no message")
        stamp_ms = self.timestamp_ms if stamped else None
        base_offset = 0
        if wrapper_magic == 1 and self.offset != 0:
            last = entries[-1][0]
            if self.offset < last:
                raise UnreadableError(
                    f"the wrapper's offset {self.offset} is below that of its last message, {last}"
                )
            base_offset = self.offset - last
        for offset, data in entries:
            message = RawMessage(as_int64(base_offset + offset), data)
            if message.magic == 1:
                message = RawMessage(message.offset, data, stamp_ms)
            if message.compression is not CompressionType.NONE:
                raise UnreadableError(f"offset {message.offset}: compressed inside a wrapper")
            yield message

    def _decompressed(self, max_bytes: int) -> bytes:
        codec, value = self.compression, self.value
        if self.magic not in (0, 1) or codec is CompressionType.ZSTD or value is None:
            raise UnreadableError(
                f"the wrapper at offset {self.offset} has magic {self.magic}, codec "
                f"{codec.name.lower()} and {'no' if value is None else 'a'} value"
            )
        try:
            if codec is CompressionType.LZ4 and self.magic == 0:
                value = with_right_checksum(value)
            return decompress(codec, value, max_bytes=max_bytes)
        except StreamTooLargeError as error:
            raise TooLargeError(f"the wrapper at offset {self.offset}: {error}") from None
        except DecompressionError as error:
            raise UnreadableError(f"the wrapper at offset {self.offset}: {error}") from None

    def _entries(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        position = 0
        while position + OFFSET_AND_SIZE.size <= len(data):
            offset, size = OFFSET_AND_SIZE.unpack_from(data, position)
            if size < SMALLEST_SIZE:
                raise UnreadableError(
                    f"a message of {size} bytes inside the wrapper at offset {self.offset}"
                )
            position += OFFSET_AND_SIZE.size
            if position + size > len(data):
                return
            yield offset, data[position : position + size]
            position += size


def as_int32(value: int) -> int:
    """The value after Java's int overflow."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def as_int64(value: int) -> int:
    """The value after Java's long overflow."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def codec_of(attributes: int) -> CompressionType:
    """The codec in a batch's or message's attributes. Raises UnreadableError for ids 5 to 7."""
    codec = attributes & COMPRESSION_MASK
    if codec > CompressionType.ZSTD:
        raise UnreadableError(f"compression id {codec} names no codec (0 to 4 do)")
    return CompressionType(codec)
