"""The segments of a partition as they lie there now, and where in one of them an offset is.

A broker may be at work: segments are rolled, deleted, and replaced by cleaned ones at any time. A
file that is open stays what it was; names are only good for a moment. Where the cleaner replaces
segments there is an instant in which the new one is still called `.swap` and the old ones are gone:
then it is read under that name, for it is complete.

An index is a hint: it may belong to the file before it was cleaned, or not be written yet. What it
says is used where a batch lies there that ends at the offset it tells.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from odradek.pipeline.decoding.varints import Ints
from odradek.protocol.any_batch import read_any_header
from odradek.protocol.batch_header import HEADER_BYTES, BatchHeader, CorruptRecordError
from odradek.storage.batch_scan import scan_headers
from odradek.storage.filenames import FileKind, FileState, parse_segment_file, segment_file
from odradek.storage.files import Files, OpenFile

_ENTRY_BYTES = 8  # of an offset index


class SegmentPath(NamedTuple):
    """A `.log` file by its first offset."""

    base_offset: int
    path: Path


@dataclass(frozen=True, slots=True)
class OpenSegment:
    """A `.log` file that is open; the first `size_bytes` of it are looked at."""

    base_offset: int
    file: OpenFile
    size_bytes: int


class BatchPlace(NamedTuple):
    """The batch at `position` ends with `last_offset`."""

    last_offset: int
    position: int


@dataclass(frozen=True, slots=True)
class IndexedPlaces:
    """Many of them, in their order."""

    last_offset: Ints
    position: Ints

    @property
    def count(self) -> int:
        return int(self.position.size)

    def place(self, number: int) -> BatchPlace:
        """One of them; -1: the last."""
        return BatchPlace(int(self.last_offset[number]), int(self.position[number]))


def list_segments(files: Files, directory: Path) -> list[SegmentPath]:
    """In the order of their offsets. Raises OSError."""
    found: dict[int, Path] = {}
    for name in sorted(files.list_directory(directory)):
        parsed = parse_segment_file(name)
        if parsed is None or parsed.kind is not FileKind.LOG:
            continue
        # `.log` sorts before `.log.swap`.
        if parsed.state is FileState.LIVE or parsed.state is FileState.SWAP:
            found.setdefault(parsed.offset, directory / name)
    return [SegmentPath(offset, path) for offset, path in sorted(found.items())]


def open_segment(files: Files, segment: SegmentPath) -> OpenSegment:
    """Raises OSError: it may be gone since it was listed."""
    file = files.open(segment.path, read_only=True)
    return OpenSegment(segment.base_offset, file, file.append_position)


def headers_from(
    files: Files, segment: OpenSegment, position: int = 0
) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each whole batch. Raises CorruptRecordError."""
    return scan_headers(files, segment.file, position, segment.size_bytes)


def indexed_places(files: Files, segment: OpenSegment) -> IndexedPlaces:
    """What the offset index tells, as far as it goes; nothing without one."""
    path = segment.file.path.parent / segment_file(segment.base_offset, FileKind.OFFSET_INDEX)
    try:
        data = _index_entries(files, files.open(path, read_only=True))
    except FileNotFoundError:
        data = b""
    pairs: Ints = np.frombuffer(data, ">i4").astype(np.int64).reshape(-1, 2)
    rising = (np.diff(pairs, axis=0, prepend=np.array([[-1, -1]])) > 0).all(axis=1)
    rising &= pairs[:, 1] < segment.size_bytes
    ends = np.flatnonzero(~rising)
    kept = pairs[: int(ends[0])] if ends.size else pairs
    return IndexedPlaces(segment.base_offset + kept[:, 0], kept[:, 1])


def _index_entries(files: Files, index: OpenFile) -> bytes:
    """Without the zeros that follow in an active segment, of which there are megabytes."""
    used, room = 0, index.append_position // _ENTRY_BYTES
    looked_at = room - 1  # a closed segment's index is full
    while used < room:
        if any(files.pread(index, _ENTRY_BYTES, looked_at * _ENTRY_BYTES)):
            used = looked_at + 1
        else:
            room = looked_at
        looked_at = (used + room) // 2
    data = files.pread(index, used * _ENTRY_BYTES, 0)
    return data[: len(data) // _ENTRY_BYTES * _ENTRY_BYTES]


def place_before(files: Files, segment: OpenSegment, offset: int) -> int:
    """A position at or before the batch with `offset` where a batch begins; 0 if none is known."""
    return _before(files, segment, indexed_places(files, segment), offset)


def span_of(files: Files, segment: OpenSegment, start: int, end: int) -> tuple[int, int]:
    """Positions between which the offsets [start, end) lie, where batches begin and end."""
    places = indexed_places(files, segment)
    return _before(files, segment, places, start), _behind(files, segment, places, end)


def _before(files: Files, segment: OpenSegment, places: IndexedPlaces, offset: int) -> int:
    number = int(np.searchsorted(places.last_offset, offset, "right")) - 1
    if number < 0:
        return 0
    place = places.place(number)
    return place.position if is_true(files, segment, place) else 0


def _behind(files: Files, segment: OpenSegment, places: IndexedPlaces, end: int) -> int:
    """Behind all batches with offsets before `end`; the end of the file if no such is known."""
    covering = int(np.searchsorted(places.last_offset, end - 1))
    if covering + 1 >= places.count:
        return segment.size_bytes
    place = places.place(covering + 1)
    is_behind = is_true(files, segment, place, not_before=end)
    return place.position if is_behind else segment.size_bytes


def is_true(files: Files, segment: OpenSegment, place: BatchPlace, not_before: int = 0) -> bool:
    """Whether such a batch lies there, without offsets before that."""
    data = files.pread(segment.file, HEADER_BYTES, place.position)
    try:
        header = read_any_header(data)
    except CorruptRecordError:
        return False
    return header.last_offset == place.last_offset and header.base_offset >= not_before
