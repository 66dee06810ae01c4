"""Where the frames of zstd data end, and how much each can hold: known before it is unpacked.

    4    frame magic 0xFD2FB528, little-endian; 0x184D2A50 to 5F: a frame to be skipped (its size
         follows in 4 bytes)
    1    flags: bits 7-6 the width of the content size, bit 5 single segment (there is no window
         byte, and always a content size), bit 2 checksum, bits 1-0 the width of the dictionary id
    1    window size: 2 ** (10 + bits 7-3), and as many eighths of that more as bits 2-0 say
    …    dictionary id, content size
    …    blocks: 3 bytes (bit 0 last one, bits 2-1 kind, then a size), content
    4    checksum, where the flags say so

Java's clients do not write the content size, so an unpacker would have to feel its way. But a block
holds 128 KiB at most: the sum over the blocks is room enough for all of them.

RFC 8878.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPED_MAGIC = b"\x2a\x4d\x18"  # behind a first byte of 0x50 to 0x5f
_MOST_IN_A_BLOCK = 128 << 10
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_RAW, _REPEATED, _COMPRESSED = 0, 1, 2


class NoFrameError(ValueError):
    """What lies there is no frame, or no whole one."""


class TooManyFramesError(ValueError):
    """There are more frames and blocks than were allowed."""


class Frame(NamedTuple):
    """`[begin, end)` is the whole frame; it holds no more than `most_bytes`."""

    begin: int
    end: int
    most_bytes: int
    window_bytes: int
    blocks: int


def zstd_frames(data: memoryview, max_parts: int = sys.maxsize) -> Iterator[Frame]:
    """The frames that lie behind each other. Raises NoFrameError when the walk comes to none.

    `max_parts` bounds the frames together with their blocks: TooManyFramesError.
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


def _frame_at(data: memoryview, begin: int, max_blocks: int) -> Frame:
    try:
        magic = data[begin : begin + 4]
        if magic == _MAGIC:
            frame = _content_frame(data, begin, max_blocks)
        elif magic[1:] == _SKIPPED_MAGIC and magic[0] >> 4 == 5:
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
    most, end, blocks = _blocks(data, position, max_blocks)
    if content is not None:
        if content > most:
            raise NoFrameError(f"the frame at byte {begin} claims {content} bytes and has fewer")
        most = content
    return Frame(begin, end + (4 if flags & 4 else 0), most, window or most, blocks)


def _blocks(data: memoryview, position: int, max_blocks: int) -> tuple[int, int, int]:
    """How much the blocks hold at most, where the last one ends, and how many there are.

    Raises IndexError, TooManyFramesError.
    """
    most, last, blocks = 0, 0, 0
    while not last:
        blocks += 1
        if blocks > max_blocks:
            raise TooManyFramesError
        head = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        last, kind, size = head & 1, head >> 1 & 3, head >> 3
        if kind == _COMPRESSED:
            most += _MOST_IN_A_BLOCK
            position += 3 + size
        elif kind == _RAW:
            most += size
            position += 3 + size
        elif kind == _REPEATED:
            most += min(size, _MOST_IN_A_BLOCK)
            position += 4
        else:
            raise NoFrameError(f"the block at byte {position} is of no kind")
    return most, position, blocks


def _number(data: memoryview, position: int, width: int) -> int:
    if position + width > len(data):
        raise IndexError
    return int.from_bytes(data[position : position + width], "little")
