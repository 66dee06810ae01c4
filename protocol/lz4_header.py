"""The header checksum of LZ4 frames, as the oldest Kafka clients got it wrong (KAFKA-3160).

    at  size  field
     0     4  frame magic 0x184D2204, little-endian
     4     1  flags: bit 3 says that a content size is there; Kafka knows no dictionary id (bit 0)
     5     1  block size
     6   0/8  content size
     .     1  header checksum: the second byte of the XXH32 of all since byte 4

Until 0.10 Kafka took the frame magic into the sum. Its successors write that wrong sum in messages
of magic 0, because old clients expect it, and the right one in all others; in magic 0 they read
frames with any sum. Our decoder refuses a wrong one, so it is given a frame that was put right.

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
# XXH32's constants, and its word.
_P1, _P2, _P3, _P4, _P5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1
_WORD = struct.Struct("<I")
_MASK = 0xFFFFFFFF


def with_old_checksum(frame: Buffer) -> bytes:
    """The frame as messages of magic 0 carry it: its header summed from the frame magic on."""
    return _with_checksum(frame, summed_from=0)


def with_right_checksum(frame: Buffer) -> bytes:
    """The frame as every decoder reads it; bytes that are no frame come back as they are."""
    return _with_checksum(frame, summed_from=_FLAGS_POSITION)


def _with_checksum(frame: Buffer, *, summed_from: int) -> bytes:
    fixed = bytearray(frame)  # a copy: one byte changes, and the buffer is someone else's
    position = _checksum_position(fixed)
    if position is not None:
        fixed[position] = _short_xxh32(bytes(fixed[summed_from:position])) >> 8 & 0xFF
    return bytes(fixed)


def _checksum_position(frame: bytearray) -> int | None:
    """None when this is no LZ4 frame that Kafka reads, or one that ends inside its header."""
    if not frame.startswith(_FRAME_MAGIC) or len(frame) <= _FLAGS_POSITION:
        return None
    flags = frame[_FLAGS_POSITION]
    if flags & _DICTIONARY_FLAG:
        return None
    sized = _CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE_FLAG else 0
    position = _FLAGS_POSITION + _DESCRIPTOR_BYTES + sized
    return position if position < len(frame) else None


def _short_xxh32(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes; from there on it would start otherwise."""
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
