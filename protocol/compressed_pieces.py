"""Decompresses a stream piece by piece, for streams that are too large to be held at once.

A piece is at most some 16 MiB, but for a raw snappy block, and for a zstd frame where cramjam reads
it. These are one piece: their content must be in memory to be decompressed. What is accepted is
what compression.py accepts.
"""

from collections.abc import Callable, Iterator

from .codec_libraries import zstd_library
from .codec_libraries.errors import CodecError
from .compression import (
    SNAPPY_MAGIC,
    CompressionType,
    _invalid,
    framed_blocks,
    lz4_pieces,
    snappy_content,
)
from .gzip_header import WINDOW_BITS, begins_member
from .zstd_frames import NoFrameError, zstd_frames

_GZIP_INPUT_BYTES = 16 << 10  # of which deflate makes at most 16 MiB
_LARGEST_BLOCK_BYTES = 1 << 30


def decompressed_pieces(compression: CompressionType, data: memoryview) -> Iterator[bytes]:
    """Yield the content of a compressed stream. Raises DecompressionError."""
    return _CODECS[compression](data)


def _gzip(view: memoryview) -> Iterator[bytes]:
    from zlib_ng import zlib_ng

    position = 0
    while not position or begins_member(view, position):
        decompressor = zlib_ng.decompressobj(wbits=WINDOW_BITS)
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
    is_framed = view[: len(SNAPPY_MAGIC)] == SNAPPY_MAGIC
    for block in framed_blocks(view) if is_framed else (view,):
        yield snappy_content(block, _LARGEST_BLOCK_BYTES)


def _zstd(view: memoryview) -> Iterator[bytes]:
    pieces = zstd_library().pieces
    try:
        for frame in zstd_frames(view):
            yield from pieces(view[frame.begin : frame.end], frame)
    except (NoFrameError, CodecError) as error:
        raise _invalid("zstd", error) from None


_CODECS: dict[CompressionType, Callable[[memoryview], Iterator[bytes]]] = {
    CompressionType.GZIP: _gzip,
    CompressionType.SNAPPY: _snappy,
    CompressionType.LZ4: lz4_pieces,
    CompressionType.ZSTD: _zstd,
}
