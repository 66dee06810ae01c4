"""Reads a segment's file in pieces of whole batches, so that memory is bounded by the largest.

Batches of magic 2 come with the table of their headers; their checksums are verified on demand.
Messages of magic 0 and 1, which come before them in an old log, are returned as they are. Reading
ends before an incomplete batch, without an error, also if the file has become shorter than it was
when it was opened: a broker cuts a log in place.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from odradek.pipeline.decoding.batch_table import BatchTable, find_batches, read_table
from odradek.pipeline.decoding.legacy_messages import whole_messages
from odradek.protocol.any_batch import SMALLEST_MESSAGE_BYTES, read_message_header
from odradek.protocol.batch_header import (
    CHECKED_POSITION,
    HEADER_BYTES,
    MAGIC_POSITION,
    MAGIC_V2,
    CorruptRecordError,
    read_header,
)
from odradek.protocol.crc import crc32c
from odradek.storage.log_reader import OpenSegment

# Larger pieces are slower: numpy's arrays for them do not fit into the processor's caches.
_PIECE_BYTES = 8 << 20


class Piece(NamedTuple):
    """Whole batches, or whole messages of magic 0 and 1, which have no table.

    `position` is that of the first byte in the file; `end_position`, of the next batch.
    """

    data: bytes
    table: BatchTable | None
    next_offset: int
    position: int
    end_position: int


def read_pieces(
    segment: OpenSegment,
    position: int,
    end_position: int,
    *,
    verify_crc: bool,
    piece_bytes: int = _PIECE_BYTES,
) -> Iterator[Piece]:
    """Yield all whole batches from `position`, where a batch begins, up to `end_position`.

    Raises CorruptRecordError, OSError.
    """
    try:
        while (left := end_position - position) > MAGIC_POSITION:
            data = segment.pread(min(piece_bytes, left), position)
            if not any(data[:HEADER_BYTES]) and segment.is_unused_from(position):
                return  # the end of a preallocated file
            size = _first_size(data)
            if size is None or size > left:
                return
            if size > len(data):
                data = segment.pread(size, position)
                if size > len(data):
                    return
            piece = _piece(data, position, verify_crc=verify_crc)
            yield piece
            position = piece.end_position
    except CorruptRecordError as error:
        raise CorruptRecordError(f"{segment.file.path} from byte {position} on: {error}") from error


def _first_size(data: bytes) -> int | None:
    """Return the size of the first batch or message; None if its header is incomplete."""
    if len(data) <= MAGIC_POSITION:
        return None
    if data[MAGIC_POSITION] == MAGIC_V2:
        return read_header(data).size_bytes if len(data) >= HEADER_BYTES else None
    if len(data) < SMALLEST_MESSAGE_BYTES:
        return None
    return read_message_header(data).size_bytes


def _piece(data: bytes, position: int, *, verify_crc: bool) -> Piece:
    if data[MAGIC_POSITION] != MAGIC_V2:
        return _messages(data, position)
    positions, end = find_batches(data)
    table = read_table(np.frombuffer(data, np.uint8), positions)
    if verify_crc:
        verify_checksums(data, table)
    return Piece(data, table, int(table.last_offset[-1]) + 1, position, position + end)


def verify_checksums(data: bytes, table: BatchTable) -> None:
    """Raise CorruptRecordError for the first batch whose checksum is wrong."""
    view = memoryview(data)
    rows = zip(table.position.tolist(), table.size_bytes.tolist(), strict=True)
    computed = np.fromiter(
        (crc32c(view[begin + CHECKED_POSITION : begin + size]) for begin, size in rows),
        np.int64,
        table.height,
    )
    wrong = np.flatnonzero(computed != table.crc)
    if wrong.size:
        row = int(wrong[0])
        raise CorruptRecordError(
            f"the batch at offset {table.base_offset[row]}: stored CRC {table.crc[row]:#010x}, "
            f"computed {computed[row]:#010x}"
        )


def _messages(data: bytes, position: int) -> Piece:
    """Return the messages at the start of `data`. The first is known to be whole."""
    end = next_offset = 0
    for begin, header in whole_messages(data):
        end, next_offset = begin + header.size_bytes, header.next_offset
    return Piece(data[:end], None, next_offset, position, position + end)
