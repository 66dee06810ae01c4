"""Decompresses a stream piece by piece, for streams that are too large to be held at once.

A piece is at most some 16 MiB, but for a raw snappy block, which is one piece: its content must be
in memory to be decompressed. What is accepted is what compression.py accepts.
"""

from collections.abc import Callable, Iterator

from .compression import (
    _LZ4_INPUT_BYTES,
    _LZ4_OUTPUT_BYTES,
    _ZSTD_PIECE_BYTES,
    SNAPPY_HEADER,
    SNAPPY_MAGIC,
    CompressionType,
    _framed_block,
    _invalid,
    _snappy_block,
)
from .gzip_header import begins_member
from .zstd_frames import NoFrameError, zstd_frames

_GZIP_INPUT_BYTES = 16 << 10  # of which deflate makes at most 16 MiB
_LARGEST_BLOCK_BYTES = 1 << 30
_GZIP_WINDOW_BITS = 31


def decompressed_pieces(compression: CompressionType, data: memoryview) -> Iterator[bytes]:
    """Yield the content of a compressed stream. Raises DecompressionError."""
    return _CODECS[compression](data)


def _gzip(view: memoryview) -> Iterator[bytes]:
    from zlib_ng import zlib_ng

    position = 0
    while not position or begins_member(view, position):
        decompressor = zlib_ng.decompressobj(wbits=_GZIP_WINDOW_BITS)
        while not decompressor.eof:
            stored = view[position : position + _GZIP_INPUT_BYTES]
            if not stored:
                raise _invalid("gzip", "the stream ends too early")
            try:
                yield decompressor.decompress(stored)
            except zlib_ng.error as error:  # type: ignore[misc]  # the stub calls it an instance
                raise _invalid("gzip", error) from None
            position += len(stored)
        position -= len(decompressor.unused_data)


def _snappy(view: memoryview) -> Iterator[bytes]:
    if view[: len(SNAPPY_MAGIC)] != SNAPPY_MAGIC:
        yield _snappy_block(view, _LARGEST_BLOCK_BYTES)
        return
    position = len(SNAPPY_HEADER)
    while position < len(view):
        if view[position : position + len(SNAPPY_MAGIC)] == SNAPPY_MAGIC:
            position += len(SNAPPY_HEADER)  # another stream follows
            continue
        block, position = _framed_block(view, position)
        yield _snappy_block(block, _LARGEST_BLOCK_BYTES)


def _lz4(view: memoryview) -> Iterator[bytes]:
    from lz4 import frame

    decompressor = frame.LZ4FrameDecompressor()
    for start in range(0, len(view), _LZ4_INPUT_BYTES):
        pending = view[start : start + _LZ4_INPUT_BYTES]
        is_full = True
        while is_full:
            try:
                part: bytes = decompressor.decompress(pending, _LZ4_OUTPUT_BYTES)
            except (RuntimeError, ValueError) as error:
                raise _invalid("lz4", error) from None
            yield part
            if decompressor.eof:
                return
            pending = pending[:0]
            is_full = len(part) == _LZ4_OUTPUT_BYTES
    raise _invalid("lz4", "the frame ends too early")


def _zstd(view: memoryview) -> Iterator[bytes]:
    import zstandard

    try:
        for frame in zstd_frames(view):
            # Not the thread's decompressor: others may use it between two pieces.
            decompressor = zstandard.ZstdDecompressor().decompressobj()
            for position in range(frame.begin, frame.end, _ZSTD_PIECE_BYTES):
                stored = view[position : min(position + _ZSTD_PIECE_BYTES, frame.end)]
                yield decompressor.decompress(stored)
    except (NoFrameError, zstandard.ZstdError) as error:
        raise _invalid("zstd", error) from None


_CODECS: dict[CompressionType, Callable[[memoryview], Iterator[bytes]]] = {
    CompressionType.GZIP: _gzip,
    CompressionType.SNAPPY: _snappy,
    CompressionType.LZ4: _lz4,
    CompressionType.ZSTD: _zstd,
}
