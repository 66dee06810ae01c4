"""The headers of all whole batches in a piece of a segment, as a table of columns.

A Python loop finds where each batch begins, because that depends on the length of the batch before.
numpy then reads each field of all headers at once. The loop ends before the first batch that is not
complete, and before one of magic 0 or 1, which has another header (see legacy_messages.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from odradek.protocol.batch_header import (
    COMPRESSION_MASK,
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    TRANSACTIONAL_BIT,
    BatchHeader,
    CorruptRecordError,
)

from .varints import Bools, Bytes, Ints

# struct and numpy use the same letters for the same number types.
_HEADER = np.dtype(
    [(name, f">{code}") for name, code in zip(BatchHeader._fields, HEADER.format[1:], strict=True)]
)
_COPIED_FIELDS = (
    "base_timestamp",
    "max_timestamp",
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "attributes",
    "crc",
)
_SMALLEST_LENGTH = HEADER_BYTES - LOG_OVERHEAD


@dataclass(frozen=True, slots=True)
class BatchTable:
    """One row per batch, in the order of the file. Positions are bytes of the piece."""

    position: Ints
    size_bytes: Ints
    base_offset: Ints
    last_offset: Ints
    base_timestamp: Ints
    max_timestamp: Ints
    partition_leader_epoch: Ints
    producer_id: Ints
    producer_epoch: Ints
    base_sequence: Ints
    record_count: Ints
    attributes: Ints
    crc: Ints

    def where(self, rows: Bools) -> "BatchTable":
        """Return the rows that the mask selects."""
        return self if rows.all() else self._each(rows)

    def rows(self, start: int, stop: int) -> "BatchTable":
        """Return the rows from `start` to before `stop`."""
        return self._each(slice(start, stop))

    def _each(self, rows: Bools | slice) -> "BatchTable":
        return BatchTable(*(getattr(self, column.name)[rows] for column in fields(self)))

    @property
    def height(self) -> int:
        return int(self.position.size)

    @property
    def compression_id(self) -> Ints:
        return self.attributes & COMPRESSION_MASK

    @property
    def is_log_append_time(self) -> Bools:
        return self._has(LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> Bools:
        return self._has(TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> Bools:
        return self._has(CONTROL_BIT)

    @property
    def has_no_gaps(self) -> Bools:
        """Whether each offset from the base offset to the last offset has a record."""
        full: Bools = self.last_offset - self.base_offset + 1 == self.record_count
        return full

    def _has(self, bit: int) -> Bools:
        found: Bools = self.attributes & bit != 0
        return found


def find_batches(data: bytes, position: int = 0) -> tuple[Ints, int]:
    """Return the positions of whole v2 batches, and the position after the last of them.

    Raises CorruptRecordError if a length is too small for a batch header.
    """
    positions: list[int] = []
    add, room = positions.append, len(data)
    from_bytes = int.from_bytes
    while position + HEADER_BYTES <= room and data[position + MAGIC_POSITION] == MAGIC_V2:
        length = from_bytes(data[position + 8 : position + 12], "big", signed=True)
        if length < _SMALLEST_LENGTH:
            raise CorruptRecordError(
                f"byte {position}: a batch length of {length} is too small for a header"
            )
        next_position = position + LOG_OVERHEAD + length
        if next_position > room:
            break
        add(position)
        position = next_position
    return np.array(positions, np.int64), position


def read_table(data: Bytes, position: Ints) -> BatchTable:
    """Return the headers at these positions. Raises CorruptRecordError for impossible counts."""
    # A view with a stride of 1 byte: a header at each byte. Indexing copies those that are wanted.
    room = max(data.size - HEADER_BYTES + 1, 0)
    header = np.ndarray((room,), _HEADER, data, strides=(1,))[position]
    base_offset = header["base_offset"].astype(np.int64)
    last_offset = base_offset + header["last_offset_delta"]
    count = header["record_count"].astype(np.int64)
    wrong = (base_offset < 0) | (last_offset < base_offset) | (count < 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise CorruptRecordError(
            f"byte {position[row]}: offsets {base_offset[row]} to {last_offset[row]}, "
            f"{count[row]} records"
        )
    return BatchTable(
        position=position,
        size_bytes=header["batch_length"].astype(np.int64) + LOG_OVERHEAD,
        base_offset=base_offset,
        last_offset=last_offset,
        record_count=count,
        **{name: header[name].astype(np.int64) for name in _COPIED_FIELDS},
    )


def table_of(headers: Sequence[tuple[int, BatchHeader]]) -> BatchTable:
    """Return the table of headers that were read one by one, with their positions."""
    names = [column.name for column in fields(BatchTable) if column.name != "position"]
    columns = ([getattr(header, name) for _, header in headers] for name in names)
    positions = [position for position, _ in headers]
    return BatchTable(*(np.array(column, np.int64) for column in (positions, *columns)))
