"""Reads a batch that decompresses to more than is held in memory at once, in parts.

A part ends with a whole record. A record of more than 1 GiB is refused: positions in a part must
fit into 31 bits.
"""

from collections.abc import Iterable, Iterator

from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.compressed_pieces import decompressed_pieces
from odradek.protocol.compression import CompressionType, DecompressionError
from odradek.protocol.primitives import read_varint

_PART_BYTES = 32 << 20
_LARGEST_RECORD_BYTES = 1 << 30


def read_parts(
    stored: memoryview, codec: CompressionType, record_count: int
) -> Iterator[tuple[bytes, int, int]]:
    """Yield parts of a batch: the bytes, how many records they begin with, and where these end.

    Raises CorruptRecordError.
    """
    try:
        yield from _parts(decompressed_pieces(codec, stored), record_count)
    except DecompressionError as error:
        raise CorruptRecordError(str(error)) from None


def _parts(pieces: Iterable[bytes], left: int) -> Iterator[tuple[bytes, int, int]]:
    parts, size, wanted = list[bytes](), 0, _PART_BYTES
    for piece in pieces:
        parts.append(piece)
        size += len(piece)
        if size < wanted:
            continue
        data = b"".join(parts)
        count, end = _whole_records(data, left)
        if count:
            yield data, count, end
            left -= count
        elif not left:
            break
        parts, size = [data[end:]], len(data) - end
        wanted = max(_PART_BYTES, _first_size(parts[0]))
    data = b"".join(parts)
    count, end = _whole_records(data, left)
    if count != left or end != len(data):
        raise CorruptRecordError(
            f"{left - count} records are missing, or {len(data) - end} bytes are left over"
        )
    if count:
        yield data, count, end


def _whole_records(data: bytes, max_count: int) -> tuple[int, int]:
    """Return how many whole records the data begins with, at most `max_count`, and their end."""
    position = count = 0
    while count < max_count:
        end = _end(data, position)
        if end is None or end > len(data):
            break
        position, count = end, count + 1
    return count, position


def _first_size(data: bytes) -> int:
    """Return the size of the first record; 0 if its length is not known yet."""
    size = _end(data, 0) or 0
    if size > _LARGEST_RECORD_BYTES:
        raise CorruptRecordError(f"a record has {size} bytes, more than {_LARGEST_RECORD_BYTES}")
    return size


def _end(data: bytes, position: int) -> int | None:
    """Return the end of the record at a position; None if its length is cut off."""
    try:
        size, body = read_varint(data, position)
    except IndexError:
        return None
    except ValueError as error:
        raise CorruptRecordError(f"the length of a record: {error}") from None
    if size < 0:
        raise CorruptRecordError(f"a record has a length of {size}")
    return body + size
