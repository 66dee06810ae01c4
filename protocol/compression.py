"""The five compression types of a record batch: one stream per batch, as every client writes it.

    none    the bytes themselves
    gzip    one gzip member (or several behind each other)
    snappy  Java writes the framing of xerial's snappy-java: the magic b"\\x82SNAPPY\\0", two int32
            (version, lowest compatible version), then blocks, each an int32 length and a raw snappy
            block of 32 KiB. librdkafka writes one raw snappy block without any framing.
    lz4     an LZ4 frame with independent blocks: Java reads no linked ones
    zstd    frames, in which Java does not say how large the content is

What is read is bounded: a client can pack gigabytes into a batch of a kilobyte, so decompression
stops at `max_bytes`. The codecs are imported at their first use: a broker hands batches on as they
are, and most never need one.

Kafka: org.apache.kafka.common.compress.
"""

import struct
import threading
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING

from .zstd_frames import Frame, NoFrameError, zstd_frames

if TYPE_CHECKING:
    import zstandard

Buffer = bytes | bytearray | memoryview

MAX_DECOMPRESSED_BYTES = 256 << 20
GZIP_DEFAULT_LEVEL = -1  # zlib's own, 6
LZ4_DEFAULT_LEVEL = 9
ZSTD_DEFAULT_LEVEL = 3
SNAPPY_MAGIC = b"\x82SNAPPY\x00"
SNAPPY_HEADER = SNAPPY_MAGIC + struct.pack(">ii", 1, 1)
SNAPPY_BLOCK_BYTES = 32 << 10
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW_BITS = 31  # a gzip header and trailer around the largest window
# zstd's decoder cannot stop half way through its input. A block of 4 bytes can hold 128 KiB, so
# this much of it makes at most 16 MiB.
_ZSTD_PIECE_BYTES = 512
# An unpacker holds on to a window as large as it has ever needed: this covers all usual levels.
_ZSTD_KEPT_WINDOW_BYTES = 8 << 20
_kept = threading.local()
_LZ4_OUTPUT_BYTES = 1 << 20
_LZ4_LOWEST_HIGH_LEVEL = 3  # the library takes lower ones for the fast compressor
_BLOCK_LENGTH = struct.Struct(">i")


class CompressionType(IntEnum):
    """Bits 0-2 of a batch's attributes: never renumber. Kafka: CompressionType."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class DecompressionError(ValueError):
    """Bytes that are no stream of that codec, or end too early, or hold more than was allowed."""


def compress(compression: CompressionType, data: Buffer, level: int | None = None) -> bytes:
    """`data` as one stream that Java and librdkafka read.

    `level` is that of `compression.gzip.level` and its like, in their ranges; None is the default.
    """
    return _COMPRESSORS[compression](data, level)


def decompress(
    compression: CompressionType, data: Buffer, *, max_bytes: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """What was compressed. Raises DecompressionError, also above `max_bytes`."""
    content = _DECOMPRESSORS[compression](data, max_bytes)
    if len(content) > max_bytes:
        raise _too_large(compression.name, max_bytes)
    return content


def _too_large(codec: str, max_bytes: int) -> DecompressionError:
    return DecompressionError(f"{codec.lower()} data holds more than {max_bytes} bytes")


def _broken(codec: str, error: object) -> DecompressionError:
    return DecompressionError(f"not {codec} data: {error}")


def _compress_none(data: Buffer, _: int | None) -> bytes:
    return bytes(data)


def _decompress_none(data: Buffer, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise _too_large("NONE", max_bytes)
    return bytes(data)


def _compress_gzip(data: Buffer, level: int | None) -> bytes:
    from zlib_ng import zlib_ng

    level = GZIP_DEFAULT_LEVEL if level is None else level
    packer = zlib_ng.compressobj(level=level, wbits=_GZIP_WINDOW_BITS)
    return packer.compress(data) + packer.flush()


def _decompress_gzip(data: Buffer, max_bytes: int) -> bytes:
    """Also several members; what follows the last and is none is left alone, as Java does."""

    from zlib_ng import zlib_ng

    content, rest = b"", bytes(data)
    while True:
        unpacker = zlib_ng.decompressobj(wbits=_GZIP_WINDOW_BITS)
        try:
            content += unpacker.decompress(rest, max_bytes - len(content) + 1)
        except zlib_ng.error as error:  # type: ignore[misc]  # the stub calls the class an instance
            raise _broken("gzip", error) from None
        if len(content) > max_bytes:
            raise _too_large("GZIP", max_bytes)
        if not unpacker.eof:
            raise _broken("gzip", "the stream ends too early")
        rest = unpacker.unused_data
        if not rest.startswith(_GZIP_MAGIC):
            return content


def _compress_snappy(data: Buffer, _: int | None) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    parts = [SNAPPY_HEADER]
    for start in range(0, len(view), SNAPPY_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(view[start : start + SNAPPY_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, max_bytes: int) -> bytes:
    view = memoryview(data)
    if view[: len(SNAPPY_MAGIC)] != SNAPPY_MAGIC:
        return _snappy_block(view, max_bytes)
    parts: list[bytes] = []
    position, size = len(SNAPPY_HEADER), 0
    while position < len(view):
        if view[position : position + len(SNAPPY_MAGIC)] == SNAPPY_MAGIC:
            position += len(SNAPPY_HEADER)  # streams behind each other
            continue
        block, position = _framed_block(view, position)
        parts.append(_snappy_block(block, max_bytes - size))
        size += len(parts[-1])
    return b"".join(parts)


def _framed_block(view: memoryview, position: int) -> tuple[memoryview, int]:
    start = position + _BLOCK_LENGTH.size
    if start > len(view):
        raise _broken("snappy", f"the length of the block at byte {position} is cut")
    (length,) = _BLOCK_LENGTH.unpack_from(view, position)
    if not 0 <= length <= len(view) - start:
        raise _broken(
            "snappy",
            f"the block at byte {position} claims {length} bytes, {len(view) - start} are left",
        )
    return view[start : start + length], start + length


def _snappy_block(block: memoryview, max_bytes: int) -> bytes:
    from cramjam import DecompressionError as SnappyError
    from cramjam import snappy

    try:
        # The block begins with its length: ask before anything is allocated.
        if snappy.decompress_raw_len(block) > max_bytes:
            raise _too_large("SNAPPY", max_bytes)
        return bytes(snappy.decompress_raw(block))
    except SnappyError as error:
        raise _broken("snappy", error) from None


def _compress_lz4(data: Buffer, level: int | None) -> bytes:
    from lz4 import frame

    # As in Kafka its default is the fast compressor, and all other levels are the high one's.
    fast = level is None or level == LZ4_DEFAULT_LEVEL
    packed: bytes = frame.compress(
        data,
        compression_level=0 if fast else max(level or 0, _LZ4_LOWEST_HIGH_LEVEL),
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return packed


def _decompress_lz4(data: Buffer, max_bytes: int) -> bytes:
    """One frame; Java ignores what follows it."""
    from lz4 import frame

    unpacker = frame.LZ4FrameDecompressor()
    parts: list[bytes] = []
    size, feed = 0, data
    # In steps: the decoder reserves as much as it is allowed to return.
    while not unpacker.eof and size <= max_bytes:
        try:
            part: bytes = unpacker.decompress(feed, _LZ4_OUTPUT_BYTES)
        except (RuntimeError, ValueError) as error:
            raise _broken("lz4", error) from None
        parts.append(part)
        size, feed = size + len(part), b""
        if not part and not unpacker.eof:
            raise _broken("lz4", "the frame ends too early")
    return b"".join(parts)


def _compress_zstd(data: Buffer, level: int | None) -> bytes:
    import zstandard

    level = ZSTD_DEFAULT_LEVEL if level is None else level
    return zstandard.ZstdCompressor(level=level).compress(data)


def _decompress_zstd(data: Buffer, max_bytes: int) -> bytes:
    """All frames; what follows the last one must be a frame too."""
    view = memoryview(data)
    parts: list[bytes] = []
    room = max_bytes
    try:
        for frame in zstd_frames(view):
            parts.append(_zstd_content(view[frame.begin : frame.end], frame, room))
            room -= len(parts[-1])
            if room < 0:
                raise _too_large("ZSTD", max_bytes)
    except NoFrameError as error:
        raise _broken("zstd", error) from None
    if not parts:
        raise _broken("zstd", "the frame ends too early")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _zstd_content(stored: memoryview, frame: Frame, room: int) -> bytes:
    """What the frame holds; of more than there is room for, not much more."""
    import zstandard

    unpacker = _zstd_unpacker(frame.window_bytes)
    try:
        if 0 < frame.most_bytes <= room:
            return unpacker.decompress(stored, max_output_size=frame.most_bytes)
        return _zstd_in_pieces(unpacker.decompressobj(), stored, room)
    except zstandard.ZstdError as error:
        raise _broken("zstd", error) from None


def _zstd_in_pieces(
    unpacker: "zstandard.ZstdDecompressionObj", stored: memoryview, room: int
) -> bytes:
    parts: list[bytes] = []
    for position in range(0, len(stored), _ZSTD_PIECE_BYTES):
        parts.append(unpacker.decompress(stored[position : position + _ZSTD_PIECE_BYTES]))
        room -= len(parts[-1])
        if room < 0:
            break
    return b"".join(parts)


def _zstd_unpacker(window_bytes: int) -> "zstandard.ZstdDecompressor":
    """This thread's own; making one takes longer than unpacking 16 KiB."""
    import zstandard

    if window_bytes > _ZSTD_KEPT_WINDOW_BYTES:
        return zstandard.ZstdDecompressor()
    unpacker: zstandard.ZstdDecompressor | None = getattr(_kept, "zstd_unpacker", None)
    if unpacker is None:
        unpacker = _kept.zstd_unpacker = zstandard.ZstdDecompressor()
    return unpacker


_COMPRESSORS: dict[CompressionType, Callable[[Buffer, int | None], bytes]] = {
    CompressionType.NONE: _compress_none,
    CompressionType.GZIP: _compress_gzip,
    CompressionType.SNAPPY: _compress_snappy,
    CompressionType.LZ4: _compress_lz4,
    CompressionType.ZSTD: _compress_zstd,
}
_DECOMPRESSORS: dict[CompressionType, Callable[[Buffer, int], bytes]] = {
    CompressionType.NONE: _decompress_none,
    CompressionType.GZIP: _decompress_gzip,
    CompressionType.SNAPPY: _decompress_snappy,
    CompressionType.LZ4: _decompress_lz4,
    CompressionType.ZSTD: _decompress_zstd,
}
