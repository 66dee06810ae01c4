"""Batches of at most a megabyte that take seconds to walk, and topics that ask for a walk."""

import gzip
import struct
import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import zstandard

from odradek.protocol.batch_header import read_header, stamp_crc
from odradek.protocol.compression import CompressionType, compress
from odradek.protocol.legacy import build_message_set
from odradek.protocol.primitives import write_varint
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch

NOW_MS = 1_700_000_000_000
LARGEST_BYTES = 1_000_000  # below the default max.message.bytes
# An empty key, no value, no headers; offset delta 0, whatever its place is.
SMALLEST_RECORD = bytes([12, 0, 0, 0, 0, 1, 0])
EMPTY_HEADER = b"\0\1"
NONE, GZIP, SNAPPY, LZ4, ZSTD = CompressionType

COMPACTED = {"cleanup.policy": "compact"}
RECOMPRESSED = {"compression.type": "lz4"}
DATED = {"message.timestamp.before.max.ms": "9000000000000"}


def batch_around(stored: bytes, codec: CompressionType, count: int) -> bytes:
    """A batch with a sound header of `count` records; `stored` is what follows the header."""
    batch = bytearray(build_batch([Record(b"", b"", NOW_MS)]))[:61] + stored
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    struct.pack_into(">h", batch, 21, codec)
    struct.pack_into(">i", batch, 23, count - 1)
    struct.pack_into(">i", batch, 57, count)
    stamp_crc(batch)
    assert read_header(batch).size_bytes == len(batch)
    return bytes(batch)


def records(unpacked_bytes: int, codec: CompressionType = ZSTD) -> bytes:
    """So many bytes of the smallest records."""
    count = unpacked_bytes // len(SMALLEST_RECORD)
    return batch_around(compress(codec, SMALLEST_RECORD * count), codec, count)


def zeros(unpacked_bytes: int, codec: CompressionType) -> bytes:
    """One record whose value is that large."""
    batch = build_batch([Record(b"", bytes(unpacked_bytes), NOW_MS)], compression=codec)
    return bytes(batch)


def headers(count: int) -> bytes:
    """One record with so many empty headers."""
    body = bytearray(SMALLEST_RECORD[1:-1])
    write_varint(body, count)
    body += EMPTY_HEADER * count
    record = bytearray()
    write_varint(record, len(body))
    return batch_around(bytes(record + body), NONE, 1)


def gzip_members(count: int) -> bytes:
    """A record in front of so many gzip members that hold nothing."""
    return batch_around(gzip.compress(SMALLEST_RECORD) + gzip.compress(b"") * count, GZIP, 1)


def gzip_blocks(count: int) -> bytes:
    """A gzip member of so many deflate blocks that hold nothing, and have tables of codes."""
    # HLIT, HDIST, HCLEN; lengths for codes 18 and 1; 256 zeros, and twice the length 1; the end.
    fields = [(0, 1), (2, 2), (0, 5), (0, 5), (14, 4), (0, 6), (1, 3), (0, 42), (1, 3)]
    fields += [(1, 1), (127, 7), (1, 1), (107, 7), (0, 3)]
    bits = "".join(f"{value:0{width}b}"[::-1] for value, width in fields) * 8
    eight = int(bits[::-1], 2).to_bytes(len(bits) // 8, "little")
    stored = gzip.compress(b"")[:10] + eight * (count // 8) + b"\x03\0" + bytes(8)
    return batch_around(stored, GZIP, 1)


def zstd_frames(count: int) -> bytes:
    """A record in front of so many zstd frames that hold nothing."""
    empty = zstandard.ZstdCompressor(write_content_size=False).compress(b"")
    return batch_around(compress(ZSTD, SMALLEST_RECORD) + empty * count, ZSTD, 1)


def zstd_blocks(count: int) -> bytes:
    """A record behind so many blocks of its frame that hold nothing."""
    raw = (len(SMALLEST_RECORD) << 3 | 1).to_bytes(3, "little") + SMALLEST_RECORD
    return batch_around(b"\x28\xb5\x2f\xfd\x00\x58" + bytes(3) * count + raw, ZSTD, 1)


def snappy_blocks(count: int) -> bytes:
    """A record in front of so many snappy blocks that hold nothing."""
    empty = struct.pack(">i", 1) + b"\0"
    return batch_around(compress(SNAPPY, SMALLEST_RECORD) + empty * count, SNAPPY, 1)


def lz4_blocks(count: int) -> bytes:
    """Records of which each lies in an LZ4 block of its own."""
    block = struct.pack("<I", 0x80000000 | len(SMALLEST_RECORD)) + SMALLEST_RECORD
    return batch_around(compress(LZ4, b"")[:7] + block * count + bytes(4), LZ4, count)


def message(content: bytes, attributes: int) -> bytes:
    """One message of magic 1 without a key."""
    body = struct.pack(">bbqii", 1, attributes, NOW_MS, -1, len(content)) + content
    return struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body


def messages(size_bytes: int) -> bytes:
    """An uncompressed message set of empty messages."""
    one = bytes(build_message_set([Record(None, b"", NOW_MS)], magic=1))
    return one * (size_bytes // len(one))


def wrapped(unpacked_bytes: int) -> bytes:
    """The same in a wrapper."""
    return message(compress(GZIP, messages(unpacked_bytes)), GZIP)


class Kind(NamedTuple):
    """What a hostile client sends, and to what topic. `version`: of Produce."""

    make: Callable[[], bytes]
    topic_config: Mapping[str, str]
    version: int = 9


KINDS = {
    "not_walked": Kind(lambda: records(LARGEST_BYTES, NONE), {}),  # for comparison
    "records": Kind(lambda: records(LARGEST_BYTES, NONE), COMPACTED),
    "records_in_zstd": Kind(lambda: records(90 << 20), COMPACTED),
    "records_to_recompress": Kind(lambda: records(8 << 20, GZIP), RECOMPRESSED),
    "records_with_times": Kind(lambda: records(8 << 20, LZ4), DATED),
    "zstd_bomb": Kind(lambda: zeros(128 << 20, ZSTD), COMPACTED),
    "gzip_bomb": Kind(lambda: zeros(128 << 20, GZIP), COMPACTED),
    "value_to_recompress": Kind(lambda: zeros(90 << 20, ZSTD), RECOMPRESSED),
    "headers": Kind(lambda: headers(480_000), COMPACTED),
    "gzip_members": Kind(lambda: gzip_members(49_000), COMPACTED),
    "gzip_blocks": Kind(lambda: gzip_blocks(88_000), COMPACTED),
    "zstd_frames": Kind(lambda: zstd_frames(110_000), COMPACTED),
    "zstd_blocks": Kind(lambda: zstd_blocks(330_000), COMPACTED),
    "snappy_blocks": Kind(lambda: snappy_blocks(199_000), COMPACTED),
    "lz4_blocks": Kind(lambda: lz4_blocks(90_000), COMPACTED),
    "count_lies": Kind(lambda: batch_around(gzip.compress(b""), GZIP, 1 << 11), COMPACTED),
    "messages": Kind(lambda: messages(LARGEST_BYTES), {}, 2),
    "wrapped_messages": Kind(lambda: wrapped(90 << 20), {}, 2),
}
