"""Message sets as Kafka 0.7 to 0.10 wrote them: made and taken apart by hand, byte for byte.

An oracle of its own: nothing here comes from `odradek.protocol`.

    message  := offset int64, size int32, crc uint32, magic int8, attributes int8,
                timestamp int64 (magic 1 only), key bytes, value bytes
    bytes    := length int32 (-1: null), that many bytes
    attributes: bits 0-2 the codec, bit 3 the timestamp is LogAppendTime (magic 1 only)

A compressed set is one message (the wrapper) whose value is a compressed set. With magic 0 the
messages inside carry their offsets; with magic 1 they are counted from 0 and the wrapper has the
offset of the last (KIP-31), and a wrapper with LogAppendTime dates all that is in it (KIP-32).
"""

import gzip
import struct
import zlib
from typing import NamedTuple

import cramjam
import lz4.frame

NONE, GZIP, SNAPPY, LZ4 = range(4)
CODEC_MASK = 7
LOG_APPEND_TIME = 8
START_MS = 1_700_000_000_000
OVERHEAD = 12  # offset and size


class OldMessage(NamedTuple):
    """A message that is not a wrapper, with the offset and the time that a consumer gives it."""

    offset: int
    magic: int
    attributes: int
    timestamp_ms: int  # -1 with magic 0
    key: bytes | None
    value: bytes | None


class Wrapper(NamedTuple):
    """A compressed message and what is in it; the offsets inside are as they were written."""

    offset: int
    magic: int
    attributes: int
    timestamp_ms: int
    key: bytes | None
    inside: list[OldMessage]


def message(
    value: bytes | None,
    key: bytes | None = b"key",
    *,
    magic: int = 1,
    offset: int = 0,
    timestamp_ms: int = START_MS,
    attributes: int = 0,
) -> bytes:
    """One message with its offset and size."""
    content = struct.pack(">bb", magic, attributes)
    if magic > 0:
        content += struct.pack(">q", timestamp_ms)
    content += _bytes(key) + _bytes(value)
    sealed = struct.pack(">I", zlib.crc32(content)) + content
    return struct.pack(">qi", offset, len(sealed)) + sealed


def message_set(
    *values: bytes | None, magic: int = 1, key: bytes | None = b"key", at_ms: int = START_MS
) -> bytes:
    """Messages with offsets from 0 on, a second apart."""
    return b"".join(
        message(value, key, magic=magic, offset=index, timestamp_ms=at_ms + 1000 * index)
        for index, value in enumerate(values)
    )


def wrapper(
    inside: bytes,
    codec: int,
    *,
    magic: int = 1,
    offset: int = 0,
    key: bytes | None = None,
    timestamp_ms: int = START_MS,
    attributes: int = 0,
) -> bytes:
    """A set, compressed, as the value of one message."""
    return message(
        compressed(inside, codec, magic),
        key,
        magic=magic,
        offset=offset,
        timestamp_ms=timestamp_ms,
        attributes=codec | attributes,
    )


def compressed(data: bytes, codec: int, magic: int = 1) -> bytes:
    """Bytes in a codec, the way the clients of the time framed them."""
    if codec == GZIP:
        return gzip.compress(data, mtime=0)
    if codec == SNAPPY:
        block = bytes(cramjam.snappy.compress_raw(data))
        return b"\x82SNAPPY\x00" + struct.pack(">iii", 1, 1, len(block)) + block
    frame = lz4.frame.compress(data, block_linked=False, store_size=False)
    return _with_wrong_checksum(frame) if magic == 0 else frame


def decompressed(data: bytes, codec: int, magic: int = 1) -> bytes:
    """The bytes that were compressed."""
    if codec == GZIP:
        return gzip.decompress(data)
    if codec == LZ4:
        return bytes(lz4.frame.decompress(data if magic else _with_right_checksum(data)))
    if not data.startswith(b"\x82SNAPPY\x00"):
        return bytes(cramjam.snappy.decompress_raw(data))
    position, plain = 16, b""
    while position < len(data):
        (length,) = struct.unpack_from(">i", data, position)
        plain += bytes(cramjam.snappy.decompress_raw(data[position + 4 : position + 4 + length]))
        position += 4 + length
    return plain


def taken_apart(data: bytes) -> tuple[list[OldMessage | Wrapper], bytes]:
    """The messages of a set, and the bytes behind the last that is whole; checks every checksum."""
    found: list[OldMessage | Wrapper] = []
    position = 0
    while position + OVERHEAD <= len(data):
        offset, size = struct.unpack_from(">qi", data, position)
        end = position + OVERHEAD + size
        if end > len(data):
            break
        found.append(_message_of(offset, data[position + OVERHEAD : end]))
        position = end
    return found, data[position:]


def flat(data: bytes) -> list[OldMessage]:
    """The messages as a consumer sees them: wrappers opened, offsets and times made absolute."""
    found: list[OldMessage] = []
    for one in taken_apart(data)[0]:
        found += [one] if isinstance(one, OldMessage) else _opened(one)
    return found


def _opened(one: Wrapper) -> list[OldMessage]:
    base = one.offset - one.inside[-1].offset if one.magic else 0
    stamped = one.attributes & LOG_APPEND_TIME
    return [
        each._replace(
            offset=base + each.offset,
            timestamp_ms=one.timestamp_ms if stamped else each.timestamp_ms,
        )
        for each in one.inside
    ]


def _message_of(offset: int, content: bytes) -> OldMessage | Wrapper:
    crc, magic, attributes = struct.unpack_from(">Ibb", content)
    assert zlib.crc32(content[4:]) == crc, f"a wrong checksum at offset {offset}"
    timestamp_ms, position = -1, 6
    if magic > 0:
        (timestamp_ms,) = struct.unpack_from(">q", content, position)
        position += 8
    key, position = _read_bytes(content, position)
    value, position = _read_bytes(content, position)
    assert position == len(content), f"{len(content) - position} bytes behind the value"
    codec = attributes & CODEC_MASK
    if codec == NONE:
        return OldMessage(offset, magic, attributes, timestamp_ms, key, value)
    assert value is not None
    inside, tail = taken_apart(decompressed(value, codec, magic))
    assert tail == b""
    assert all(isinstance(each, OldMessage) for each in inside), "a wrapper in a wrapper"
    return Wrapper(offset, magic, attributes, timestamp_ms, key, inside)  # type: ignore[arg-type] # see above


def _bytes(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def _read_bytes(content: bytes, position: int) -> tuple[bytes | None, int]:
    (length,) = struct.unpack_from(">i", content, position)
    position += 4
    if length < 0:
        return None, position
    return content[position : position + length], position + length


# -- LZ4 as Kafka 0.8 framed it (KAFKA-3160) -------------------------------------------------------
#
# The header's checksum was taken over the magic number as well. Magic 0 keeps that for ever.


def _with_wrong_checksum(frame: bytes) -> bytes:
    wrong = bytearray(frame)
    wrong[6] = _header_checksum(frame[:6])
    return bytes(wrong)


def _with_right_checksum(frame: bytes) -> bytes:
    assert frame[6] == _header_checksum(frame[:6]), "no client of that time reads this frame"
    right = bytearray(frame)
    right[6] = _header_checksum(frame[4:6])  # the descriptor of our frames and Kafka's: no size
    return bytes(right)


def _header_checksum(header: bytes) -> int:
    return (_xxh32(header) >> 8) & 0xFF


def _xxh32(data: bytes) -> int:
    """XXH32 with seed 0, for fewer than 16 bytes."""
    assert len(data) < 16
    prime1, prime2, prime3, prime4, prime5 = (
        2654435761,
        2246822519,
        3266489917,
        668265263,
        374761393,
    )
    state, position = prime5 + len(data), 0
    while position + 4 <= len(data):
        (word,) = struct.unpack_from("<I", data, position)
        state = _rotated(state + word * prime3, 17) * prime4
        position += 4
    for byte in data[position:]:
        state = _rotated(state + byte * prime5, 11) * prime1
    state &= 0xFFFFFFFF
    state = ((state ^ state >> 15) * prime2) & 0xFFFFFFFF
    state = ((state ^ state >> 13) * prime3) & 0xFFFFFFFF
    return state ^ state >> 16


def _rotated(word: int, bits: int) -> int:
    word &= 0xFFFFFFFF
    return (word << bits | word >> 32 - bits) & 0xFFFFFFFF
