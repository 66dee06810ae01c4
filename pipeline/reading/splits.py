"""Cuts ranges of offsets into parts of about so many bytes, at places where a batch ends.

The offset index of a segment tells such places, about one every `index.interval.bytes`; where it
does not reach (it is written late for the active segment), the headers do.
"""

from dataclasses import replace
from itertools import pairwise, zip_longest

import numpy as np

from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.files import Files

from .partitions import LogDirectories
from .range_reader import OffsetRange
from .segments import (
    IndexedPlaces,
    OpenSegment,
    headers_from,
    indexed_places,
    is_true,
    list_segments,
    open_segment,
)


def split_range(
    directories: LogDirectories, wanted: OffsetRange, max_bytes: int
) -> list[OffsetRange]:
    """Parts that follow each other and make up the range; at least one.

    Raises FileNotFoundError, CorruptRecordError.
    """
    files, directory = directories.files, directories.required(wanted.partition)
    segments = list_segments(files, directory)
    cuts = _Cuts(wanted, max_bytes)
    for segment, following in zip_longest(segments, segments[1:]):
        end = wanted.end if following is None else following.base_offset
        if end > wanted.start and segment.base_offset < wanted.end:
            opened = open_segment(files, segment)
            cuts.see(opened, _places(files, opened, max_bytes), end)
    edges = [wanted.start, *cuts.offsets, wanted.end]
    return [part_of(wanted, start, end) for start, end in pairwise(edges) if start < end]


def split_or_whole(
    directories: LogDirectories, wanted: OffsetRange, max_bytes: int
) -> list[OffsetRange]:
    """The same; what is damaged or has gone stays whole, and whoever reads it will tell."""
    try:
        return split_range(directories, wanted, max_bytes)
    except (CorruptRecordError, FileNotFoundError):
        return [wanted]


class _Cuts:
    """Offsets to cut at, found segment by segment: where so many bytes are full."""

    def __init__(self, wanted: OffsetRange, max_bytes: int) -> None:
        self.offsets: list[int] = []
        self._wanted = wanted
        self._max_bytes = max_bytes
        self._seen_bytes = 0
        self._full = 0

    def see(self, segment: OpenSegment, places: IndexedPlaces, end: int) -> None:
        """`end` is where the next segment begins."""
        first = int(np.searchsorted(places.last_offset, self._wanted.start))
        behind = int(np.searchsorted(places.last_offset, self._wanted.end))
        begin_at = places.place(first - 1).position if first else 0
        end_at = places.place(behind).position if behind < places.count else segment.size_bytes
        seen = self._seen_bytes + places.position[first:behind] - begin_at
        full = seen // self._max_bytes
        is_cut = np.diff(full, prepend=self._full) > 0
        self.offsets += (places.last_offset[first:behind][is_cut] + 1).tolist()
        self._seen_bytes += max(0, end_at - begin_at)
        self._full = max(self._full, int(full[-1]) if full.size else 0)
        if self._seen_bytes // self._max_bytes > self._full and end < self._wanted.end:
            self._full = self._seen_bytes // self._max_bytes
            self.offsets.append(end)


def part_of(wanted: OffsetRange, start: int, end: int) -> OffsetRange:
    """Offsets [start, end) of it, with what has been aborted there."""
    aborted = tuple(
        each for each in wanted.aborted if each.first_offset < end and each.last_offset >= start
    )
    return replace(wanted, start=start, end=end, aborted=aborted)


def _places(files: Files, segment: OpenSegment, max_bytes: int) -> IndexedPlaces:
    """Ends of batches, close enough to each other."""
    places = indexed_places(files, segment)
    if places.count and not is_true(files, segment, places.place(-1)):
        places = IndexedPlaces(places.last_offset[:0], places.position[:0])
    position = places.place(-1).position if places.count else 0
    if segment.size_bytes - position <= max_bytes:
        return places
    found = [(header.last_offset, at) for at, header in headers_from(files, segment, position)]
    further = np.array(found[1 if places.count else 0 :], np.int64).reshape(-1, 2)
    return IndexedPlaces(
        np.concatenate((places.last_offset, further[:, 0])),
        np.concatenate((places.position, further[:, 1])),
    )
