"""Finds the ends of zstd frames, and an upper bound of each frame's content, before decompression.

    4    frame magic 0xFD2FB528, little-endian; 0x184D2A50 to 5F: a skippable frame (its size
         follows in 4 bytes)
    1    flags: bits 7-6 the width of the content size, bit 5 single segment (no window byte, and
         always a content size), bit 2 checksum, bits 1-0 the width of the dictionary id
    1    window size: 2 ** (10 + bits 7-3), times (8 + bits 2-0) / 8
    …    dictionary id, content size
    …    blocks: 3 bytes (bit 0 last block, bits 2-1 type, then a size), content
    4    checksum, if the flag is set

Java's clients do not write the content size, so the size of the output buffer is not known. But a
block holds at most 128 KiB, so the sum over the blocks is an upper bound.

RFC 8878.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

_MAGIC = b"\x28\xb5\x2f\xfd"
_MAGIC_TO_SKIP = b"\x2a\x4d\x18"  # after a first byte of 0x50 to 0x5f
_MAX_BLOCK_BYTES = 128 << 10
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_RAW, _REPEATED, _COMPRESSED = 0, 1, 2


class NoFrameError(ValueError):
    """The bytes are not a frame, or the frame is truncated."""


class TooManyFramesError(ValueError):
    """The data has more frames and blocks than allowed."""


class Frame(NamedTuple):
    """A frame at `[begin, end)` of the data, with at most `max_content_bytes` of content."""

    begin: int
    end: int
    max_content_bytes: int
    window_bytes: int
    blocks: int


def zstd_frames(data: memoryview, max_parts: int = sys.maxsize) -> Iterator[Frame]:
    """Yield the frames of `data` in order. Raises NoFrameError at bytes that are not a frame.

    Raises TooManyFramesError if frames and blocks together are more than `max_parts`.
    """
    position = 0
    while position < len(data):
        max_parts -= 1
        frame = _frame_at(data, position, max_parts)
        max_parts -= frame.blocks
        if max_parts < 0:
            raise TooManyFramesError
        position = frame.end
        yield frame


def is_magic_to_skip(magic: memoryview) -> bool:
    """Whether four bytes begin a frame to skip. LZ4 and zstd have the same."""
    return magic[1:] == _MAGIC_TO_SKIP and magic[0] >> 4 == 5


def _frame_at(data: memoryview, begin: int, max_blocks: int) -> Frame:
    try:
        magic = data[begin : begin + 4]
        if magic == _MAGIC:
            frame = _content_frame(data, begin, max_blocks)
        elif is_magic_to_skip(magic):
            size = _number(data, begin + 4, 4)
            frame = Frame(begin, begin + 8 + size, 0, 0, 0)
        else:
            raise NoFrameError(f"no frame begins at byte {begin}")
    except IndexError:
        frame = None
    if frame is None or frame.end > len(data):
        raise NoFrameError("the frame ends too early")
    return frame


def _content_frame(data: memoryview, begin: int, max_blocks: int) -> Frame:
    flags = data[begin + 4]
    position = begin + 5
    is_single_segment = flags & 0x20
    window = 0
    if not is_single_segment:
        exponent, eighths = data[position] >> 3, data[position] & 7
        window = (1 << 10 + exponent) // 8 * (8 + eighths)
        position += 1
    position += _DICTIONARY_ID_BYTES[flags & 3]
    content: int | None = None
    width = _CONTENT_SIZE_BYTES[flags >> 6] or (1 if is_single_segment else 0)
    if width:
        content = _number(data, position, width) + (256 if width == 2 else 0)
        position += width
    max_content, end, blocks = _blocks(data, position, max_blocks)
    if content is not None:
        if content > max_content:
            raise NoFrameError(
                f"the frame at byte {begin} claims {content} bytes; its blocks hold fewer"
            )
        max_content = content
    return Frame(begin, end + (4 if flags & 4 else 0), max_content, window or max_content, blocks)


def _blocks(data: memoryview, position: int, max_blocks: int) -> tuple[int, int, int]:
    """Return the largest content of the blocks, the end of the last one, and their number.

    Raises IndexError, TooManyFramesError.
    """
    max_content, last, blocks = 0, 0, 0
    while not last:
        blocks += 1
        if blocks > max_blocks:
            raise TooManyFramesError
        head = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        last, kind, size = head & 1, head >> 1 & 3, head >> 3
        if kind == _COMPRESSED:
            max_content += _MAX_BLOCK_BYTES
            position += 3 + size
        elif kind == _RAW:
            max_content += size
            position += 3 + size
        elif kind == _REPEATED:
            max_content += min(size, _MAX_BLOCK_BYTES)
            position += 4
        else:
            raise NoFrameError(f"the block at byte {position} has an unknown type")
    return max_content, position, blocks


def _number(data: memoryview, position: int, width: int) -> int:
    if position + width > len(data):
        raise IndexError
    return int.from_bytes(data[position : position + width], "little")
