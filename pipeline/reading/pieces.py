"""A segment's file in pieces of whole batches, so that memory is bounded by the largest of them.

Batches of magic 2 come with the table of their headers and, on demand, with verified checksums;
messages of magic 0 and 1, which lie before them in an old log, as they are. The walk ends without
a word before a batch that is not there whole.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from crc32c import crc32c

from odradek.pipeline.decoding.batch_table import BatchTable, find_batches, read_table
from odradek.pipeline.decoding.old_messages import whole_messages
from odradek.protocol.any_batch import SMALLEST_MESSAGE_BYTES, read_message_header
from odradek.protocol.batch_header import (
    CHECKED_POSITION,
    HEADER_BYTES,
    MAGIC_POSITION,
    MAGIC_V2,
    CorruptRecordError,
    read_header,
)
from odradek.storage.files import Files

from .segments import OpenSegment

# Larger ones are read slower: what numpy makes of them does not fit into a processor's caches.
_PIECE_BYTES = 8 << 20


class Piece(NamedTuple):
    """Whole batches; of messages of magic 0 and 1 there is no table."""

    data: bytes
    table: BatchTable | None
    next_offset: int


def read_pieces(
    files: Files,
    segment: OpenSegment,
    position: int,
    end_position: int,
    *,
    verify_crc: bool,
    piece_bytes: int = _PIECE_BYTES,
) -> Iterator[Piece]:
    """All whole batches from `position`, where one begins, to `end_position`.

    Raises CorruptRecordError, OSError.
    """
    try:
        while (left := end_position - position) > MAGIC_POSITION:
            data = files.pread(segment.file, min(piece_bytes, left), position)
            size = _first_size(data)
            if size is None or size > left:
                return
            if size > len(data):
                data = files.pread_exact(segment.file, size, position)
            piece, taken = _piece(data, verify_crc=verify_crc)
            yield piece
            position += taken
    except CorruptRecordError as error:
        raise CorruptRecordError(f"{segment.file.path} from byte {position} on: {error}") from error


def _first_size(data: bytes) -> int | None:
    """Of the first batch or message; None where not even its head is there."""
    if data[MAGIC_POSITION] == MAGIC_V2:
        return read_header(data).size_bytes if len(data) >= HEADER_BYTES else None
    if len(data) < SMALLEST_MESSAGE_BYTES:
        return None
    return read_message_header(data).size_bytes


def _piece(data: bytes, *, verify_crc: bool) -> tuple[Piece, int]:
    if data[MAGIC_POSITION] != MAGIC_V2:
        return _messages(data)
    positions, end = find_batches(data)
    table = read_table(np.frombuffer(data, np.uint8), positions)
    if verify_crc:
        _verify(data, table)
    return Piece(data, table, int(table.last_offset[-1]) + 1), end


def _verify(data: bytes, table: BatchTable) -> None:
    view = memoryview(data)
    rows = zip(
        table.position.tolist(),
        table.size_bytes.tolist(),
        table.crc.tolist(),
        table.base_offset.tolist(),
        strict=True,
    )
    for position, size, stored, base_offset in rows:
        computed = crc32c(view[position + CHECKED_POSITION : position + size])
        if computed != stored:
            raise CorruptRecordError(
                f"the batch at offset {base_offset}: stored CRC {stored:#010x}, "
                f"computed {computed:#010x}"
            )


def _messages(data: bytes) -> tuple[Piece, int]:
    """The messages at the front of `data`: the first is known to be there whole."""
    end = next_offset = 0
    for position, header in whole_messages(data):
        end, next_offset = position + header.size_bytes, header.next_offset
    return Piece(data[:end], None, next_offset), end
