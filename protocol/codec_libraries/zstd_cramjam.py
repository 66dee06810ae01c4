"""zstd frames by cramjam, which unpacks frames into a buffer of the caller.

The buffer is as large as the content may be. The system provides its pages as they are written to,
so a small content takes little memory, whatever the frames announce. All frames of a stream are
unpacked by one call, because a call takes 20 us, whatever the size of a frame.

Python 3.14 has a zstd module too. It unpacks one frame at a time, and takes as long for each.
"""

from collections.abc import Iterable, Iterator

from cramjam import DecompressionError
from cramjam import zstd as cramjam_zstd

from odradek.protocol.zstd_frames import Frame

from .errors import CodecError, ContentTooLargeError
from .interfaces import Buffer

_LARGEST_FRAME_BYTES = 1 << 30
_BUFFER_IS_FULL = "failed to write whole buffer"


def compress(data: Buffer, level: int) -> bytes:
    """Write one frame."""
    return bytes(cramjam_zstd.compress(data, level=level))


def content(view: memoryview, frames: Iterable[Frame], room: int) -> bytes:
    """Return the content of the frames. Raises CodecError; ContentTooLargeError above `room`."""
    max_bytes = end = 0
    for frame in frames:
        max_bytes += frame.max_content_bytes
        end = frame.end
    buffer = bytearray(min(max_bytes, room))
    try:
        size = cramjam_zstd.decompress_into(view[:end], buffer)
    except DecompressionError as error:
        if room < max_bytes and _BUFFER_IS_FULL in str(error):
            raise ContentTooLargeError(error) from None
        raise CodecError(error) from None
    return bytes(memoryview(buffer)[:size])


def pieces(stored: memoryview, frame: Frame) -> Iterator[bytes]:
    """Yield the content of one frame, of at most 1 GiB, at once. Raises CodecError."""
    if frame.blocks:  # otherwise a frame to skip
        alone = frame._replace(begin=0, end=len(stored))
        yield content(stored, [alone], _LARGEST_FRAME_BYTES)
