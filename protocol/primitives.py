"""Primitives that are not plain `struct` formats: varints, tagged fields, and UUIDs.

Kafka's varints are LEB128, least significant group first. Lengths and tags are unsigned varints of
at most 5 bytes. The signed ones inside records are zigzag-encoded: `varint` for 32 bits (at most 5
bytes) and `varlong` for 64 bits (at most 10 bytes).

Kafka: org.apache.kafka.common.utils.ByteUtils.
"""

import base64
import binascii
import os
import struct
from collections.abc import Callable

# A reader calls `step(n)` when an array of n items begins, and `step(0)` before each item. A writer
# calls `step(1)` for each item. Many numbers are one item. The function may let others work
# meanwhile, or raise an exception.
Step = Callable[[int], None]

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MAX = 2**63 - 1

ZERO_UUID = bytes(16)
# Kafka reserves two UUIDs: all zeros means "no id", 1 is the topic id of __cluster_metadata.
METADATA_TOPIC_ID = bytes(15) + b"\x01"

MAX_VARINT_BYTES = 5
MAX_VARLONG_BYTES = 10


_three_bytes = struct.Struct("3B").pack


def uvarint_rest(data: bytes | memoryview, position: int, first: int) -> tuple[int, int]:
    """Read the rest of an unsigned varint whose first byte, with its continuation bit, is `first`.

    Returns the value (below 2**32) and the position after it.
    Raises ValueError if it is longer than 5 bytes, IndexError if the data ends inside it.
    """
    # Unrolled for speed: the length of every batch of records is read here.
    byte = data[position]
    value = first & 0x7F | (byte & 0x7F) << 7
    if byte < 0x80:
        return value, position + 1
    byte = data[position + 1]
    value |= (byte & 0x7F) << 14
    if byte < 0x80:
        return value, position + 2
    for shift in (21, 28):
        byte = data[position + shift // 7 - 1]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, position + shift // 7
    raise ValueError(f"varint is longer than {MAX_VARINT_BYTES} bytes")


def read_uvarint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The unsigned varint at `position`, and the position after it."""
    first = data[position]
    if first < 0x80:
        return first, position + 1
    return uvarint_rest(data, position + 1, first)


def too_long(what: str, size: int, left: int) -> ValueError:
    """The error for a length or a count that is larger than the data."""
    return ValueError(f"{what} of {size} does not fit the {left} bytes that are left")


def skip_tags(data: bytes | memoryview, position: int, limit: int, step: Step | None = None) -> int:
    """Skip a section of unknown tagged fields; returns the position after it.

    `step` is called as for an array of fields. Raises ValueError or IndexError if the section does
    not end before `limit`.
    """
    count, position = read_uvarint(data, position)
    if count * 2 > limit - position:
        raise too_long("a count of tagged fields", count, limit - position)
    if step is not None:
        step(count)
    for _ in range(count):
        if step is not None:
            step(0)
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        if size > limit - position:
            raise too_long("a tagged field", size, limit - position)
        position += size
    return position


def read_varint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The zigzag varint (32 bits) at `position`, and the position after it."""
    raw, position = read_uvarint(data, position)
    return (raw >> 1) ^ -(raw & 1), position


def read_varlong(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """The zigzag varlong (64 bits) at `position`, and the position after it."""
    raw = 0
    for shift in range(0, 7 * MAX_VARLONG_BYTES, 7):
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFFFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), position
    raise ValueError(f"varlong is longer than {MAX_VARLONG_BYTES} bytes")


def write_uvarint(out: bytearray, value: int) -> None:
    """Append `value` (not negative) as an unsigned varint."""
    if 0x3FFF < value < 0x200000:  # three bytes, as most lengths of record batches have
        out += _three_bytes(value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14)
        return
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_varint(out: bytearray, value: int) -> None:
    """Append `value` as a zigzag varint. A varlong has the same bytes."""
    if 0 <= value < 0x40:  # most values are small; a call would cost more than these branches
        out.append(value << 1)
    elif 0 <= value < 0x2000:
        out.append(value << 1 & 0x7F | 0x80)
        out.append(value >> 6)
    else:
        write_uvarint(out, (value << 1) ^ (value >> 63))


def random_uuid() -> bytes:
    """A random (version 4) UUID, as Kafka's Uuid.randomUuid: not reserved, no leading dash.

    Its text form is used on command lines, where a leading dash would begin an option.
    """
    while True:
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if not uuid_text(bytes(raw)).startswith("-"):
            return bytes(raw)


def random_uuid_with_dashes() -> str:
    """A random (version 4) UUID as Java prints it. `uuid.uuid4` takes three times as long."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def uuid_text(value: bytes) -> str:
    """The 22 characters of URL-safe base64 with which Kafka prints a UUID."""
    return base64.urlsafe_b64encode(value)[:22].decode("ascii")


def uuid_from_text(text: str) -> bytes:
    """The inverse of `uuid_text`. Raises ValueError."""
    try:
        padding = "=" * (-len(text) % 4)  # from Python 3.13 on, too much of it is an error
        value = base64.b64decode(text + padding, altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(f"{text!r} is not a base64 id: {error}") from None
    if len(value) != len(ZERO_UUID):
        raise ValueError(f"{text!r} holds {len(value)} bytes, not 16")
    return value
