"""The five compression types of a record batch. A batch holds one compressed stream.

    none    the bytes themselves
    gzip    one gzip member, or several in sequence
    snappy  Java writes the framing of xerial's snappy-java: the magic b"\\x82SNAPPY\\0", two int32
            (version, lowest compatible version), then blocks, each an int32 length and a raw snappy
            block of 32 KiB. librdkafka writes one raw snappy block without any framing.
    lz4     an LZ4 frame of independent blocks; others are read too, but Java does not read them
            (lz4_header.py)
    zstd    zstd frames; Java writes them without a content size

Output is bounded: a client can compress gigabytes into a batch of a kilobyte, so decompression
stops at `max_bytes`. A stream may also consist of very many empty parts (gzip members, snappy
blocks, zstd frames and their blocks), each of which costs time. `max_parts` bounds them; without
it the time is linear in the size of the stream. The blocks of a gzip member and of an LZ4 frame
cannot be counted before they are unpacked. So every GZIP_PART_BYTES of gzip and every
_LZ4_PART_BYTES of LZ4 count as a part, whatever they hold. Codecs are imported at their first use,
because a broker passes batches on as they are, and most brokers never need one. codec_libraries/
chooses those of LZ4 and zstd.

Kafka: org.apache.kafka.common.compress.
"""

import struct
import sys
from collections.abc import Callable, Iterator
from enum import IntEnum

from .codec_libraries import lz4_library, zstd_library
from .codec_libraries.errors import CodecError, ContentTooLargeError, TooManyBlocksError
from .gzip_header import WINDOW_BITS, begins_member
from .zstd_frames import NoFrameError, TooManyFramesError, zstd_frames

Buffer = bytes | bytearray | memoryview

MAX_DECOMPRESSED_BYTES = 256 << 20
NO_LIMIT = sys.maxsize
GZIP_DEFAULT_LEVEL = -1  # zlib's own, 6
LZ4_DEFAULT_LEVEL = 9
ZSTD_DEFAULT_LEVEL = 3
SNAPPY_MAGIC = b"\x82SNAPPY\x00"
SNAPPY_HEADER = SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
SNAPPY_BLOCK_BYTES = 32 << 10
# The first piece of a gzip member after the first one; each next piece is twice as long. Pieces are
# small because the library copies all input after the member's end.
_GZIP_PIECE_BYTES = 512
# This many compressed bytes count as one part: they take at most 20 us to unpack, even if they are
# only empty blocks. The smallest block takes 11 bytes and 0.8 us in gzip, because of its table of
# codes, and 5 bytes and 10 ns in LZ4.
GZIP_PART_BYTES = 256
_LZ4_PART_BYTES = 8 << 10
# With cramjam an LZ4 block takes a microsecond, so the blocks are limited too: to so many for each
# part that is allowed.
_LZ4_PART_BLOCKS = 64
_BLOCK_LENGTH = struct.Struct(">i")


class CompressionType(IntEnum):
    """Bits 0-2 of a batch's attributes. Never renumber. Kafka: CompressionType."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class DecompressionError(ValueError):
    """The data is not a stream of the codec, is truncated, or exceeds a limit."""


class StreamTooLargeError(DecompressionError):
    """The stream has more bytes or more parts than allowed; it may be valid otherwise."""


def compress(compression: CompressionType, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data` to one stream that Java and librdkafka can read.

    `level` is a value of `compression.gzip.level`, `.lz4.level` or `.zstd.level`; None is the
    codec's default.
    """
    return _COMPRESSORS[compression](data, level)


def decompress(
    compression: CompressionType,
    data: Buffer,
    *,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
    max_parts: int = NO_LIMIT,
) -> bytes:
    """Decompress `data`. Raises DecompressionError; StreamTooLargeError above a limit."""
    content = _DECOMPRESSORS[compression](data, max_bytes, max_parts)
    if len(content) > max_bytes:
        raise _too_large(compression.name, max_bytes)
    return content


def _too_large(codec: str, max_bytes: int) -> DecompressionError:
    return StreamTooLargeError(f"{codec.lower()} data holds more than {max_bytes} bytes")


def _too_many(codec: str, max_parts: int) -> DecompressionError:
    return StreamTooLargeError(f"{codec} data has more than {max_parts} parts")


def _check_parts(codec: str, view: memoryview, part_bytes: int, max_parts: int) -> None:
    """Raise StreamTooLargeError if a stream has more than `max_parts` parts of `part_bytes`."""
    if len(view) > max_parts * part_bytes:
        raise _too_many(codec, max_parts)


def _invalid(codec: str, error: object) -> DecompressionError:
    return DecompressionError(f"not {codec} data: {error}")


def _compress_none(data: Buffer, _: int | None) -> bytes:
    return bytes(data)


def _decompress_none(data: Buffer, max_bytes: int, _: int) -> bytes:
    if len(data) > max_bytes:
        raise _too_large("NONE", max_bytes)
    return bytes(data)


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    from zlib_ng import zlib_ng

    level = GZIP_DEFAULT_LEVEL if level is None else level
    compressor = zlib_ng.compressobj(level=level, wbits=WINDOW_BITS)
    return compressor.compress(data) + compressor.flush()


def _decompress_gzip(data: Buffer, max_bytes: int, max_parts: int) -> bytes:
    """Decompress all gzip members. What follows the last one is ignored (gzip_header.py)."""
    view = memoryview(data)
    _check_parts("gzip", view, GZIP_PART_BYTES, max_parts)
    contents: list[bytes] = []
    room, members = max_bytes, 0
    position, piece_bytes = 0, len(view)
    while not members or begins_member(view, position):
        members += 1
        if members > max_parts:
            raise _too_many("gzip", max_parts)
        content, position = _gzip_member(view, position, piece_bytes, room)
        room -= len(content)
        if room < 0:
            raise _too_large("GZIP", max_bytes)
        contents.append(content)
        piece_bytes = _GZIP_PIECE_BYTES
    return contents[0] if members == 1 else b"".join(contents)


def _gzip_member(view: memoryview, position: int, piece_bytes: int, room: int) -> tuple[bytes, int]:
    """Return the member's content, at most `room` + 1 bytes, and the position of its end."""
    from zlib_ng import zlib_ng

    decompressor = zlib_ng.decompressobj(wbits=WINDOW_BITS)
    parts: list[bytes] = []
    while not decompressor.eof:
        piece = view[position : position + piece_bytes]
        if not piece:
            raise _invalid("gzip", "the stream ends too early")
        try:
            parts.append(decompressor.decompress(piece, min(room + 1, NO_LIMIT)))
        except zlib_ng.error as error:  # type: ignore[misc]  # the stub calls the class an instance
            raise _invalid("gzip", error) from None
        room -= len(parts[-1])
        if room < 0:
            break
        position += len(piece)
        piece_bytes *= 2
    content = parts[0] if len(parts) == 1 else b"".join(parts)
    return content, position - len(decompressor.unused_data)


def _compress_snappy(data: Buffer, _: int | None) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    parts = [SNAPPY_HEADER]
    for start in range(0, len(view), SNAPPY_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + SNAPPY_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, max_bytes: int, max_parts: int) -> bytes:
    view = memoryview(data)
    if view[: len(SNAPPY_MAGIC)] != SNAPPY_MAGIC:
        return snappy_content(view, max_bytes)
    contents: list[bytes] = []
    room = max_bytes
    for block in framed_blocks(view, max_parts):
        contents.append(snappy_content(block, room))
        room -= len(contents[-1])
    return b"".join(contents)


def framed_blocks(view: memoryview, max_parts: int = NO_LIMIT) -> Iterator[memoryview]:
    """Yield the snappy blocks of a framed stream. Raises DecompressionError."""
    position, parts = len(SNAPPY_HEADER), 0
    while position < len(view):
        parts += 1
        if parts > max_parts:
            raise _too_many("snappy", max_parts)
        if view[position : position + len(SNAPPY_MAGIC)] == SNAPPY_MAGIC:
            position += len(SNAPPY_HEADER)  # another stream follows
            continue
        block, position = _framed_block(view, position)
        yield block


def _framed_block(view: memoryview, position: int) -> tuple[memoryview, int]:
    start = position + _BLOCK_LENGTH.size
    if start > len(view):
        raise _invalid("snappy", f"the length of the block at byte {position} is truncated")
    (length,) = _BLOCK_LENGTH.unpack_from(view, position)
    if not 0 <= length <= len(view) - start:
        raise _invalid(
            "snappy",
            f"the block at byte {position} claims {length} bytes, {len(view) - start} are left",
        )
    return view[start : start + length], start + length


def snappy_content(block: memoryview, max_bytes: int) -> bytes:
    """Decompress a raw block. Raises DecompressionError."""
    from cramjam import DecompressionError as SnappyError
    from cramjam import snappy

    try:
        # The block begins with its length. Check it before memory is allocated.
        if snappy.decompress_raw_len(block) > max_bytes:
            raise _too_large("SNAPPY", max_bytes)
        return bytes(snappy.decompress_raw(block))
    except SnappyError as error:
        raise _invalid("snappy", error) from None


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    # As in Kafka, the default level uses the fast compressor and all others the high one.
    return lz4_library().compress(data, None if level == LZ4_DEFAULT_LEVEL else level)


def _decompress_lz4(data: Buffer, max_bytes: int, max_parts: int) -> bytes:
    """Decompress one frame; Java ignores bytes after it."""
    view = memoryview(data)
    _check_parts("lz4", view, _LZ4_PART_BYTES, max_parts)
    parts: list[bytes] = []
    size = 0
    try:
        for part in lz4_pieces(view, max_parts * _LZ4_PART_BLOCKS):
            parts.append(part)
            size += len(part)
            if size > max_bytes:
                break
    except TooManyBlocksError:
        raise _too_many("lz4", max_parts) from None
    return b"".join(parts)


def lz4_pieces(view: memoryview, max_blocks: int = NO_LIMIT) -> Iterator[bytes]:
    """Yield the content of one frame. Raises DecompressionError, TooManyBlocksError."""
    try:
        yield from lz4_library().pieces(view, max_blocks)
    except TooManyBlocksError:
        raise
    except CodecError as error:
        raise _invalid("lz4", error) from None


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    return zstd_library().compress(data, ZSTD_DEFAULT_LEVEL if level is None else level)


def _decompress_zstd(data: Buffer, max_bytes: int, max_parts: int) -> bytes:
    """Decompress all frames; other bytes after a frame are an error."""
    view = memoryview(data)
    if not view:
        raise _invalid("zstd", "the frame ends too early")
    try:
        return zstd_library().content(view, zstd_frames(view, max_parts), max_bytes)
    except TooManyFramesError:
        raise _too_many("zstd", max_parts) from None
    except ContentTooLargeError:
        raise _too_large("ZSTD", max_bytes) from None
    except (NoFrameError, CodecError) as error:
        raise _invalid("zstd", error) from None


_COMPRESSORS: dict[CompressionType, Callable[[Buffer, int | None], bytes]] = {
    CompressionType.NONE: _compress_none,
    CompressionType.GZIP: _compress_gzip,
    CompressionType.SNAPPY: _compress_snappy,
    CompressionType.LZ4: _compress_lz4,
    CompressionType.ZSTD: _compress_zstd,
}
_DECOMPRESSORS: dict[CompressionType, Callable[[Buffer, int, int], bytes]] = {
    CompressionType.NONE: _decompress_none,
    CompressionType.GZIP: _decompress_gzip,
    CompressionType.SNAPPY: _decompress_snappy,
    CompressionType.LZ4: _decompress_lz4,
    CompressionType.ZSTD: _decompress_zstd,
}
