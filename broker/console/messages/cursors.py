"""Where the next page begins, as text that a client gives back: base64 of compressed JSON.

It names partitions by number; what a client may read is checked again with each request.
"""

from __future__ import annotations

import base64
import binascii
import zlib

import msgspec
from msgspec import Struct

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import MAX_INT64

# A cursor is a part of an address, of which a server takes 16 KiB.
MAX_PARTITIONS = 500
_MAX_BYTES = 64 << 10
_LEVEL = 9


class Place(Struct, array_like=True, frozen=True):
    """Where to go on in a partition, up or down to a bound.

    Newest first: offsets before `next`, down to `bound`. Else from `next` on, and before `bound`.
    """

    partition: int
    next: int
    bound: int


class Cursor(Struct, array_like=True, frozen=True):
    """The places in the partitions that are not searched to the end, and what was searched."""

    newest: bool
    searched: int
    total: int
    places: list[Place]

    def encode(self) -> str:
        """As text."""
        packed = zlib.compress(msgspec.json.encode(self), _LEVEL)
        return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode(text: str) -> Cursor:
    """Read a cursor. Raises ApiError."""
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        content = zlib.decompressobj().decompress(packed, _MAX_BYTES)
        cursor = msgspec.json.decode(content, type=Cursor)
    except (binascii.Error, ValueError, zlib.error, msgspec.MsgspecError, RecursionError):
        raise _invalid() from None
    numbers = [cursor.searched, cursor.total]
    for place in cursor.places:
        numbers += [place.partition, place.next, place.bound]
    if len(cursor.places) > MAX_PARTITIONS or not all(0 <= n <= MAX_INT64 for n in numbers):
        raise _invalid()
    if len({place.partition for place in cursor.places}) < len(cursor.places):
        raise _invalid()
    return cursor


def _invalid() -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, "the cursor is not one of this console's")
