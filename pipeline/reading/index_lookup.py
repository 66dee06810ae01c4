"""Finds positions of offsets in a segment by its offset index.

An index is only a hint: it may belong to the segment before it was cleaned, or not be written yet.
An entry is used only if a batch at its position ends at its offset.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from odradek.pipeline.decoding.varints import Ints
from odradek.protocol.any_batch import read_any_header
from odradek.protocol.batch_header import (
    HEADER_BYTES,
    MAGIC_V2,
    BatchHeader,
    CorruptRecordError,
)
from odradek.storage.filenames import FileKind
from odradek.storage.files import Files, OpenFile
from odradek.storage.log_reader import OpenSegment

_ENTRY_BYTES = 8  # of an offset index


class IndexEntry(NamedTuple):
    """The batch at `position` ends with `last_offset`."""

    last_offset: int
    position: int


@dataclass(frozen=True, slots=True)
class IndexEntries:
    """Ascending entries of an offset index, as columns."""

    last_offset: Ints
    position: Ints

    @property
    def count(self) -> int:
        return int(self.position.size)

    def at(self, number: int) -> IndexEntry:
        """Return an entry; -1 is the last."""
        return IndexEntry(int(self.last_offset[number]), int(self.position[number]))


def read_offset_index(segment: OpenSegment) -> IndexEntries:
    """Return the leading entries that ascend and are within the segment; none without an index."""
    files, path = segment.files, segment.beside(FileKind.OFFSET_INDEX)
    try:
        data = _index_entries(files, files.open(path, read_only=True))
    except FileNotFoundError:
        data = b""
    pairs: Ints = np.frombuffer(data, ">i4").astype(np.int64).reshape(-1, 2)
    ascending = (np.diff(pairs, axis=0, prepend=np.array([[-1, -1]])) > 0).all(axis=1)
    ascending &= pairs[:, 1] < segment.size_bytes
    ends = np.flatnonzero(~ascending)
    kept = pairs[: int(ends[0])] if ends.size else pairs
    return IndexEntries(segment.base_offset + kept[:, 0], kept[:, 1])


def _index_entries(files: Files, index: OpenFile) -> bytes:
    """Return the entries without the zeros that follow in an active segment, megabytes of them."""
    used, room = 0, index.append_position // _ENTRY_BYTES
    probe = room - 1  # a closed segment's index is full
    while used < room:
        if any(files.pread(index, _ENTRY_BYTES, probe * _ENTRY_BYTES)):
            used = probe + 1
        else:
            room = probe
        probe = (used + room) // 2
    data = files.pread(index, used * _ENTRY_BYTES, 0)
    return data[: len(data) // _ENTRY_BYTES * _ENTRY_BYTES]


def position_before(segment: OpenSegment, offset: int) -> int:
    """Return the position of a batch at or before the one with `offset`; 0 if none is indexed."""
    return _position_before(segment, read_offset_index(segment), offset)


def position_range(segment: OpenSegment, start: int, end: int) -> tuple[int, int]:
    """Return positions of batches, or the file's ends, that enclose the offsets [start, end)."""
    entries = read_offset_index(segment)
    return (
        _position_before(segment, entries, start),
        _position_after(segment, entries, end),
    )


def exact_position_range(segment: OpenSegment, start: int, end: int) -> tuple[int, int]:
    """Return the positions of the batches with the offsets [start, end).

    A batch before them is left out if the next one begins at `start` or before it: the last offset
    in its own header may be damaged. Of the batch after them only the header is read. Raises
    CorruptRecordError.
    """
    first = None
    last = position_before(segment, start)
    for position, header, ends_before in headers_with_ends(segment, last):
        if ends_before is None or ends_before > start:
            first, last = first if first is not None else position, position + header.size_bytes
            if header.last_offset >= end - 1 and (ends_before is None or ends_before >= end):
                break
    return (segment.size_bytes, segment.size_bytes) if first is None else (first, last)


def headers_with_ends(
    segment: OpenSegment, position: int
) -> Iterator[tuple[int, BatchHeader, int | None]]:
    """Yield position and header of each batch, and the offset before which it ends.

    That is where the next batch begins: the last offset in its own header may be damaged. None: no
    batch follows, or none that can be read. Raises CorruptRecordError.
    """
    before: tuple[int, BatchHeader] | None = None
    try:
        for at, header in segment.headers(position):
            if before is not None:
                yield *before, _end_of(before[1], header)
            before = at, header
    except CorruptRecordError:
        if before is not None:
            yield *before, None
        raise
    if before is not None:
        yield *before, None


def _end_of(header: BatchHeader, following: BatchHeader) -> int | None:
    if header.magic != MAGIC_V2:  # its offset is that of its last record
        return header.next_offset
    rises = following.magic == MAGIC_V2 and following.base_offset > header.base_offset
    return following.base_offset if rises else None


def _position_before(segment: OpenSegment, entries: IndexEntries, offset: int) -> int:
    number = int(np.searchsorted(entries.last_offset, offset, "right")) - 1
    if number < 0:
        return 0
    entry = entries.at(number)
    return entry.position if matches_log(segment, entry) else 0


def _position_after(segment: OpenSegment, entries: IndexEntries, end: int) -> int:
    """Return a position after all offsets before `end`; the end of the file if none is indexed."""
    covering = int(np.searchsorted(entries.last_offset, end - 1))
    if covering + 1 >= entries.count:
        return segment.size_bytes
    entry = entries.at(covering + 1)
    is_after = matches_log(segment, entry, not_before=end)
    return entry.position if is_after else segment.size_bytes


def matches_log(segment: OpenSegment, entry: IndexEntry, not_before: int = 0) -> bool:
    """Whether the entry is that of a batch in the log, with no offset before `not_before`."""
    data = segment.pread(HEADER_BYTES, entry.position)
    try:
        header = read_any_header(data)
    except CorruptRecordError:
        return False
    return header.last_offset == entry.last_offset and header.base_offset >= not_before
