"""Whether another gzip member follows the last one, as Java's GZIPInputStream sees it.

Java ignores what is left after a member if that is not more than 18 bytes, or if it does not begin
with a whole header. After a whole header, it refuses what is no member.

    1f 8b 08 | flags | time, extra flags, system: 6 bytes
    [2 bytes of length, extra field] [name, 0] [comment, 0] [checksum of the header: 2 bytes]
"""

import struct
import zlib

WINDOW_BITS = 31  # of zlib: a gzip header and trailer around the largest window
_START = b"\x1f\x8b\x08"
_FLAGS_AT = 3
_FIXED_BYTES = 10
_IGNORED_BYTES = 18
_CHECKSUM, _EXTRA, _NAME, _COMMENT = 2, 4, 8, 16
_LENGTH = struct.Struct("<H")
_FIRST_PIECE_BYTES = 64


def begins_member(view: memoryview, position: int) -> bool:
    """Whether Java reads another member at the position."""
    if len(view) - position <= _IGNORED_BYTES or view[position : position + 3] != _START:
        return False
    flags = view[position + _FLAGS_AT]
    if not flags & (_CHECKSUM | _EXTRA | _NAME | _COMMENT):
        return True
    try:
        return _has_rest(view, position, flags)
    except (IndexError, struct.error):  # it is cut off
        return False


def _has_rest(view: memoryview, start: int, flags: int) -> bool:
    position = start + _FIXED_BYTES
    if flags & _EXTRA:
        position += _LENGTH.size + _LENGTH.unpack_from(view, position)[0]
    if flags & _NAME:
        position = _after_zero(view, position)
    if flags & _COMMENT:
        position = _after_zero(view, position)
    if flags & _CHECKSUM:
        checksum = zlib.crc32(view[start:position]) & 0xFFFF
        return _LENGTH.unpack_from(view, position) == (checksum,)
    return position <= len(view)


def _after_zero(view: memoryview, position: int) -> int:
    """The position after the next zero byte. Raises IndexError."""
    size = _FIRST_PIECE_BYTES  # not all that is left: there may be very many members
    while position < len(view):
        found = bytes(view[position : position + size]).find(0)
        if found >= 0:
            return position + found + 1
        position += size
        size *= 2
    raise IndexError
