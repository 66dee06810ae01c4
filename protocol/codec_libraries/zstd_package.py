"""zstd frames by the package zstandard."""

import threading
from collections.abc import Iterable, Iterator

import zstandard

from odradek.protocol.zstd_frames import Frame

from .errors import CodecError
from .interfaces import Buffer

# The decoder always consumes all of its input. A block of 4 bytes can hold 128 KiB, so a piece of
# this size yields at most 16 MiB.
_PIECE_BYTES = 512
# A decompressor keeps the largest window it has used. This size covers all usual levels.
_MAX_CACHED_WINDOW_BYTES = 8 << 20
_thread_state = threading.local()


def compress(data: Buffer, level: int) -> bytes:
    """Write one frame."""
    return zstandard.ZstdCompressor(level=level).compress(data)


def content(view: memoryview, frames: Iterable[Frame], room: int) -> bytes:
    """Return the content of the frames, or slightly more than `room` bytes of it."""
    parts: list[bytes] = []
    try:
        for frame in frames:
            parts.append(_frame_content(view[frame.begin : frame.end], frame, room))
            room -= len(parts[-1])
            if room < 0:
                break
    except zstandard.ZstdError as error:
        raise CodecError(error) from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _frame_content(stored: memoryview, frame: Frame, room: int) -> bytes:
    decompressor = _decompressor(frame.window_bytes)
    if 0 < frame.max_content_bytes <= room:
        return decompressor.decompress(stored, max_output_size=frame.max_content_bytes)
    parts: list[bytes] = []
    for piece in _pieces(decompressor.decompressobj(), stored):
        parts.append(piece)
        room -= len(piece)
        if room < 0:
            break
    return b"".join(parts)


def pieces(stored: memoryview, _: Frame) -> Iterator[bytes]:
    """Yield the content of one frame in pieces of at most 16 MiB. Raises CodecError."""
    # Not the thread's decompressor: others may use it between two pieces.
    try:
        yield from _pieces(zstandard.ZstdDecompressor().decompressobj(), stored)
    except zstandard.ZstdError as error:
        raise CodecError(error) from None


def _pieces(decompressor: "zstandard.ZstdDecompressionObj", stored: memoryview) -> Iterator[bytes]:
    for position in range(0, len(stored), _PIECE_BYTES):
        yield decompressor.decompress(stored[position : position + _PIECE_BYTES])


def _decompressor(window_bytes: int) -> zstandard.ZstdDecompressor:
    """Return this thread's decompressor. Creating one takes longer than unpacking 16 KiB."""
    if window_bytes > _MAX_CACHED_WINDOW_BYTES:
        return zstandard.ZstdDecompressor()
    decompressor: zstandard.ZstdDecompressor | None = getattr(_thread_state, "decompressor", None)
    if decompressor is None:
        decompressor = _thread_state.decompressor = zstandard.ZstdDecompressor()
    return decompressor
