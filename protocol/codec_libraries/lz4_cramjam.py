"""LZ4 frames by cramjam, which unpacks single blocks. The frame around them is read here.

    …    the header, see lz4_header.py; or a frame to skip (zstd_frames.py), without content
    …    blocks: 4 bytes (bit 31: not compressed; a size), content, checksum if a flag says so
    4    0
    4    checksum of the content if a flag says so

Checksums are xxHash32. As in the package lz4, a content size of 0 is one that is not known. cramjam
can unpack a whole frame too, but only at once, and it would take bytes after the frame for another
one. A block that is linked to those before it is unpacked as a
frame of its own, after 64 KiB of the content before it. Dictionaries are not known: the first block
that refers to one cannot be unpacked. cramjam has one level only.

LZ4 frame format 1.6.4.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from cramjam import DecompressionError
from cramjam import lz4 as cramjam_lz4
from xxhash import xxh32, xxh32_intdigest

from odradek.protocol.lz4_header import (
    CONTENT_SIZE_FLAG,
    DICTIONARY_FLAG,
    FRAME_MAGIC,
    header_checksum,
)
from odradek.protocol.zstd_frames import is_magic_to_skip

from .errors import CodecError, TooManyBlocksError
from .interfaces import Buffer

_WRITTEN_HEADER = FRAME_MAGIC + b"\x60\x40\x82"  # independent blocks of 64 KiB, no checksums
_WRITTEN_BLOCK_BYTES = 64 << 10
_HISTORY_BYTES = 64 << 10
_NOT_COMPRESSED = 1 << 31  # a flag in the size of a block
_SMALLEST_BLOCK_ID = 4
_UINT32 = Struct("<I")
_END = bytes(4)


class _Header(NamedTuple):
    is_linked: bool
    has_block_sums: bool
    has_sum: bool
    content_bytes: int  # 0: not known
    block_id: int

    @property
    def max_block_bytes(self) -> int:
        return 1 << (8 + 2 * self.block_id)


class _Reader:
    """Takes the bytes of a frame in order."""

    __slots__ = ("_position", "_view")

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._position = 0

    def take(self, size: int) -> memoryview:
        """Return the next bytes. Raises CodecError if there are fewer."""
        end = self._position + size
        if end > len(self._view):
            raise CodecError("the frame ends too early")
        taken = self._view[self._position : end]
        self._position = end
        return taken

    def number(self) -> int:
        value: int = _UINT32.unpack(self.take(4))[0]
        return value


def compress(data: Buffer, _: int | None) -> bytes:
    """Write one frame of independent blocks of 64 KiB."""
    view = memoryview(data)
    parts = [_WRITTEN_HEADER]
    for start in range(0, len(view), _WRITTEN_BLOCK_BYTES):
        block = view[start : start + _WRITTEN_BLOCK_BYTES]
        packed = bytes(cramjam_lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts += (_UINT32.pack(len(packed)), packed)
        else:
            parts += (_UINT32.pack(len(block) | _NOT_COMPRESSED), bytes(block))
    parts.append(_END)
    return b"".join(parts)


def pieces(view: memoryview, max_blocks: int) -> Iterator[bytes]:
    """Yield the content of one frame, a block at a time. Raises CodecError."""
    reader = _Reader(view)
    magic = reader.take(4)
    if is_magic_to_skip(magic):
        reader.take(reader.number())
        return
    if magic != FRAME_MAGIC:
        raise CodecError("no frame begins at byte 0")
    header = _header(reader)
    checksum, size = xxh32(), 0
    for content in _blocks(reader, header, max_blocks):
        if header.has_sum:
            checksum.update(content)
        size += len(content)
        yield content
    if header.content_bytes not in (0, size):
        raise CodecError(f"the frame claims {header.content_bytes} bytes and holds {size}")
    if header.has_sum and reader.number() != checksum.intdigest():
        raise CodecError("the checksum of the content is wrong")


def _header(reader: _Reader) -> _Header:
    described = bytes(reader.take(2))
    flags, sizes = described
    if flags >> 6 != 1 or flags & 2 or sizes & 0x8F or sizes >> 4 < _SMALLEST_BLOCK_ID:
        raise CodecError("the header has unknown flags")
    content_size = bytes(reader.take(8 if flags & CONTENT_SIZE_FLAG else 0))
    dictionary_id = bytes(reader.take(4 if flags & DICTIONARY_FLAG else 0))
    (checksum,) = reader.take(1)
    if checksum != header_checksum(described + content_size + dictionary_id):
        raise CodecError("the checksum of the header is wrong")
    return _Header(
        is_linked=not flags & 0x20,
        has_block_sums=bool(flags & 0x10),
        has_sum=bool(flags & 4),
        content_bytes=int.from_bytes(content_size, "little"),
        block_id=sizes >> 4,
    )


def _blocks(reader: _Reader, header: _Header, max_blocks: int) -> Iterator[bytes]:
    """Yield the content of each block."""
    max_bytes = header.max_block_bytes
    buffer = bytearray(max_bytes)
    history = b""
    blocks = 0
    while size_and_flag := reader.number():
        blocks += 1
        if blocks > max_blocks:
            raise TooManyBlocksError
        block = reader.take(size_and_flag & ~_NOT_COMPRESSED)
        if len(block) > max_bytes:
            raise CodecError(f"a block has {len(block)} bytes, more than {max_bytes}")
        if header.has_block_sums and reader.number() != xxh32_intdigest(block):
            raise CodecError("the checksum of a block is wrong")
        if size_and_flag & _NOT_COMPRESSED:
            content = bytes(block)
        elif history:
            content = _unpack_linked(history, block, header)
        else:
            content = _unpack(block, buffer)
        if header.is_linked:
            history = (history + content)[-_HISTORY_BYTES:]
        yield content


def _unpack(block: memoryview, buffer: bytearray) -> bytes:
    """Unpack a block that is linked to none before it. Raises CodecError."""
    try:
        size = cramjam_lz4.decompress_block_into(block, buffer, output_len=len(buffer))
    except DecompressionError as error:
        raise CodecError(error) from None
    return bytes(memoryview(buffer)[:size])


def _unpack_linked(history: bytes, block: memoryview, header: _Header) -> bytes:
    """Unpack a block that is linked to `history`. Raises CodecError."""
    described = bytes((1 << 6, header.block_id << 4))
    frame = b"".join(
        (
            FRAME_MAGIC,
            described,
            bytes((header_checksum(described),)),
            _UINT32.pack(len(history) | _NOT_COMPRESSED),
            history,
            _UINT32.pack(len(block)),
            block,
            _END,
        )
    )
    buffer = bytearray(len(history) + header.max_block_bytes)
    try:
        size = cramjam_lz4.decompress_into(frame, buffer)
    except DecompressionError as error:
        raise CodecError(error) from None
    return bytes(memoryview(buffer)[len(history) : size])
