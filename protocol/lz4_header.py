"""Corrects the header checksum of LZ4 frames from the oldest Kafka clients (KAFKA-3160).

    at  size  field
     0     4  frame magic 0x184D2204, little-endian
     4     1  flags: bit 3 for a content size; Kafka never has a dictionary id (bit 0)
     5     1  block size
     6   0/8  content size
     .     1  header checksum: the second byte of the XXH32 of all bytes from 4 on

Before 0.10, Kafka included the frame magic in the checksum, which is wrong. Later versions write
the wrong checksum in messages of magic 0, because old clients expect it, and the right one in all
others. When they read magic 0 they accept any checksum. The LZ4 library used here refuses a wrong
one, so it is given a corrected frame.

Kafka: org.apache.kafka.common.compress.Lz4BlockOutputStream, Lz4BlockInputStream.
"""

import struct

from .compression import Buffer

_FRAME_MAGIC = b"\x04\x22\x4d\x18"
_FLAGS_POSITION = len(_FRAME_MAGIC)
_DESCRIPTOR_BYTES = 2  # flags and block size
_CONTENT_SIZE_BYTES = 8
_CONTENT_SIZE_FLAG = 0x08
_DICTIONARY_FLAG = 0x01
# The constants of XXH32, and its words.
_P1, _P2, _P3, _P4, _P5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
_WORD = struct.Struct("<I")
_MASK = 0xFFFFFFFF


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
        fixed[position] = _short_xxh32(bytes(fixed[summed_from:position])) >> 8 & 0xFF
    return bytes(fixed)


def _checksum_position(frame: bytearray) -> int | None:
    """Return the checksum's position, or None if this is no LZ4 frame or its header is cut off."""
    if not frame.startswith(_FRAME_MAGIC) or len(frame) <= _FLAGS_POSITION:
        return None
    flags = frame[_FLAGS_POSITION]
    if flags & _DICTIONARY_FLAG:
        return None
    sized = _CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE_FLAG else 0
    position = _FLAGS_POSITION + _DESCRIPTOR_BYTES + sized
    return position if position < len(frame) else None


def _short_xxh32(data: bytes) -> int:
    """XXH32 with seed 0, for fewer than 16 bytes only; for more the algorithm differs."""
    words = len(data) & ~3
    acc = _P5 + len(data)
    for (word,) in _WORD.iter_unpack(data[:words]):
        acc = _rotated(acc + word * _P3, 17) * _P4
    for byte in data[words:]:
        acc = _rotated(acc + byte * _P5, 11) * _P1
    acc &= _MASK
    acc = (acc ^ acc >> 15) * _P2 & _MASK
    acc = (acc ^ acc >> 13) * _P3 & _MASK
    return acc ^ acc >> 16


def _rotated(number: int, bits: int) -> int:
    number &= _MASK
    return (number << bits | number >> 32 - bits) & _MASK
