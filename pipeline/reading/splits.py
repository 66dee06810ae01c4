"""Divides ranges of offsets into parts of a given number of bytes, at ends of batches.

The offset index of a segment has about one batch per `index.interval.bytes`. The index of the
active segment is written late; after its last entry, the headers of the log are read.
"""

from dataclasses import replace
from itertools import pairwise, zip_longest

import numpy as np

from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.files import Files

from .partitions import LogDirectories
from .range_reader import OffsetRange
from .segments import (
    IndexEntries,
    OpenSegment,
    headers_from,
    list_segments,
    matches_log,
    open_segment,
    read_offset_index,
)


def split_range(
    directories: LogDirectories, wanted: OffsetRange, max_bytes: int
) -> list[OffsetRange]:
    """Return consecutive parts that make up the range; at least one.

    Raises FileNotFoundError, CorruptRecordError.
    """
    files, directory = directories.files, directories.required(wanted.partition)
    segments = list_segments(files, directory)
    points = _SplitPoints(wanted, max_bytes)
    for segment, following in zip_longest(segments, segments[1:]):
        end = wanted.end if following is None else following.base_offset
        if end > wanted.start and segment.base_offset < wanted.end:
            opened = open_segment(files, segment)
            points.add(opened, _batch_ends(files, opened, max_bytes), end)
    edges = [wanted.start, *points.offsets, wanted.end]
    return [subrange(wanted, start, end) for start, end in pairwise(edges) if start < end]


def split_if_readable(
    directories: LogDirectories, wanted: OffsetRange, max_bytes: int
) -> list[OffsetRange]:
    """Split a range, or return it whole if it is damaged or deleted: its reader reports that."""
    try:
        return split_range(directories, wanted, max_bytes)
    except (CorruptRecordError, FileNotFoundError):
        return [wanted]


class _SplitPoints:
    """The offsets at which to split: wherever `max_bytes` have been counted since the last."""

    def __init__(self, wanted: OffsetRange, max_bytes: int) -> None:
        self.offsets: list[int] = []
        self._wanted = wanted
        self._max_bytes = max_bytes
        self._total_bytes = 0
        self._full_parts = 0

    def add(self, segment: OpenSegment, ends: IndexEntries, segment_end: int) -> None:
        """Count a segment's bytes. `ends` are ends of batches, `segment_end` is an offset."""
        first = int(np.searchsorted(ends.last_offset, self._wanted.start))
        stop = int(np.searchsorted(ends.last_offset, self._wanted.end))
        begin_at = ends.at(first - 1).position if first else 0
        end_at = ends.at(stop).position if stop < ends.count else segment.size_bytes
        total = self._total_bytes + ends.position[first:stop] - begin_at
        full_parts = total // self._max_bytes
        is_split = np.diff(full_parts, prepend=self._full_parts) > 0
        self.offsets += (ends.last_offset[first:stop][is_split] + 1).tolist()
        self._total_bytes += max(0, end_at - begin_at)
        self._full_parts = max(self._full_parts, int(full_parts[-1]) if full_parts.size else 0)
        in_total = self._total_bytes // self._max_bytes
        if in_total > self._full_parts and segment_end < self._wanted.end:
            self._full_parts = in_total
            self.offsets.append(segment_end)


def subrange(wanted: OffsetRange, start: int, end: int) -> OffsetRange:
    """Return the offsets [start, end) of a range, with the aborted transactions in them."""
    aborted = tuple(
        each for each in wanted.aborted if each.first_offset < end and each.last_offset >= start
    )
    return replace(wanted, start=start, end=end, aborted=aborted)


def _batch_ends(files: Files, segment: OpenSegment, max_bytes: int) -> IndexEntries:
    """Return ends of batches that are at most about `max_bytes` apart."""
    entries = read_offset_index(files, segment)
    if entries.count and not matches_log(files, segment, entries.at(-1)):
        entries = IndexEntries(entries.last_offset[:0], entries.position[:0])
    position = entries.at(-1).position if entries.count else 0
    if segment.size_bytes - position <= max_bytes:
        return entries
    found = [(header.last_offset, at) for at, header in headers_from(files, segment, position)]
    further = np.array(found[1 if entries.count else 0 :], np.int64).reshape(-1, 2)
    return IndexEntries(
        np.concatenate((entries.last_offset, further[:, 0])),
        np.concatenate((entries.position, further[:, 1])),
    )
