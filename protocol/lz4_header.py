"""The header of an LZ4 frame: whether Java reads such a frame, and the header's checksum.

    at  size  field
     0     4  frame magic 0x184D2204, little-endian
     4     1  flags: bits 7-6 the version 01, bit 5 blocks are independent, bit 4 a checksum after
              each block, bit 3 a content size, bit 2 a checksum of the content, bit 0 a dictionary
              id
     5     1  bits 6-4 the largest content of a block: 4 is 64 KiB, 5 is 256 KiB, to 7
     6   0/8  content size
     .   0/4  dictionary id
     .     1  header checksum: bits 8-15 of the XXH32 of all bytes from 4 on

Java reads neither linked blocks nor frames with a dictionary, and no frame to skip before the
content.

The checksum of frames from the oldest Kafka clients is wrong (KAFKA-3160): before 0.10, Kafka
included the frame magic in it. Later versions write the wrong checksum in messages of magic 0,
because old clients expect it, and the right one in all others. When they read magic 0 they accept
any checksum. The LZ4 library used here refuses a wrong one, so it is given a corrected frame.

LZ4 frame format 1.6.4. Kafka: org.apache.kafka.common.compress.Lz4BlockOutputStream,
Lz4BlockInputStream.
"""

import struct

from .codec_libraries.interfaces import Buffer

FRAME_MAGIC = b"\x04\x22\x4d\x18"
CONTENT_SIZE_FLAG = 0x08
DICTIONARY_FLAG = 0x01
_FLAGS_POSITION = len(FRAME_MAGIC)
_DESCRIPTOR_BYTES = 2  # flags and block size
_CONTENT_SIZE_BYTES = 8
# The first bytes of a frame, of which the smallest has 11. After the magic Java checks these flags:
# the version, the independence of blocks, and the two last bits, which must be 0.
_FIRST_BYTES = struct.Struct("<Q")
_CHECKED_BY_JAVA = 0xE3FFFFFFFF
_READ_BY_JAVA = 0x60184D2204


def is_read_by_java(data: Buffer, position: int = 0) -> bool:
    """Whether a frame of a kind that Java reads begins there. Only magic and flags are looked at.

    Kafka: Lz4BlockInputStream.readHeader, Lz4BlockOutputStream.FLG.validate.
    """
    return (
        len(data) - position >= _FIRST_BYTES.size
        and _FIRST_BYTES.unpack_from(data, position)[0] & _CHECKED_BY_JAVA == _READ_BY_JAVA
    )


def header_checksum(data: bytes | bytearray) -> int:
    """The checksum byte for these bytes of a header."""
    from xxhash import xxh32_intdigest  # few processes need it

    return xxh32_intdigest(data) >> 8 & 0xFF


def with_old_checksum(frame: Buffer) -> bytes:
    """The frame with the wrong checksum that messages of magic 0 have."""
    return _with_checksum(frame, summed_from=0)


def with_right_checksum(frame: Buffer) -> bytes:
    """The frame with the right checksum. Bytes that are not an LZ4 frame are returned unchanged."""
    return _with_checksum(frame, summed_from=_FLAGS_POSITION)


def _with_checksum(frame: Buffer, *, summed_from: int) -> bytes:
    fixed = bytearray(frame)  # a copy, because one byte changes and the buffer is borrowed
    position = _checksum_position(fixed)
    if position is not None:
        fixed[position] = header_checksum(fixed[summed_from:position])
    return bytes(fixed)


def _checksum_position(frame: bytearray) -> int | None:
    """Return the checksum's position, or None if this is no LZ4 frame or its header is cut off."""
    if not frame.startswith(FRAME_MAGIC) or len(frame) <= _FLAGS_POSITION:
        return None
    flags = frame[_FLAGS_POSITION]
    if flags & DICTIONARY_FLAG:
        return None
    sized = _CONTENT_SIZE_BYTES if flags & CONTENT_SIZE_FLAG else 0
    position = _FLAGS_POSITION + _DESCRIPTOR_BYTES + sized
    return position if position < len(frame) else None
