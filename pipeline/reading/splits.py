"""Divides ranges of offsets into parts of a given number of bytes, at ends of batches.

The offset index of a segment has about one batch per `index.interval.bytes`. The index of the
active segment is written late; after its last entry, the headers of the log are read.
"""

from dataclasses import replace
from itertools import pairwise, zip_longest

import numpy as np

from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.log_reader import OpenSegment

from .index_lookup import IndexEntries, matches_log, read_offset_index
from .partitions import LogDirectories
from .range_reader import OffsetRange


def split_range(
    directories: LogDirectories, wanted: OffsetRange, max_bytes: int
) -> list[OffsetRange]:
    """Return consecutive parts that make up the range; at least one.

    Raises FileNotFoundError, CorruptRecordError.
    """
    reader = directories.reader(wanted.partition)
    segments = reader.segments()
    points = _SplitPoints(wanted, max_bytes)
    for segment, following in zip_longest(segments, segments[1:]):
        end = wanted.end if following is None else following.base_offset
        if end > wanted.start and segment.base_offset < wanted.end:
            opened = reader.open(segment)
            points.add(opened, _known_batches(opened, max_bytes), end)
    bounds = [wanted.start, *points.offsets, wanted.end]
    return [replace(wanted, start=start, end=end) for start, end in pairwise(bounds) if start < end]


def split_if_readable(
    directories: LogDirectories, wanted: OffsetRange, max_bytes: int
) -> list[OffsetRange]:
    """Split a range, or return it whole if it is damaged or deleted: its reader reports that."""
    try:
        return split_range(directories, wanted, max_bytes)
    except (CorruptRecordError, FileNotFoundError):
        return [wanted]


class _SplitPoints:
    """The offsets at which to split a range.

    The segments of the range are counted as one sequence of bytes. A part ends after the first
    known batch that begins at or after a multiple of `max_bytes`. So its size differs from
    `max_bytes` by up to the distance between two known batches.
    """

    def __init__(self, wanted: OffsetRange, max_bytes: int) -> None:
        self.offsets: list[int] = []
        self._wanted = wanted
        self._max_bytes = max_bytes
        self._total_bytes = 0  # of the range, in the segments before
        self._multiples = 0  # how many multiples of `max_bytes` had been reached at the last batch

    def add(self, segment: OpenSegment, batches: IndexEntries, segment_end: int) -> None:
        """Add the next segment. `batches` are some of its batches, `segment_end` is an offset."""
        # The known batches that end within the range.
        first = int(np.searchsorted(batches.last_offset, self._wanted.start))
        stop = int(np.searchsorted(batches.last_offset, self._wanted.end))
        # The bytes of the range in this segment, from the known batch before the range to the one
        # after it.
        begin = batches.at(first - 1).position if first else 0
        end = batches.at(stop).position if stop < batches.count else segment.size_bytes
        # Split after each batch before which another multiple of max_bytes has been reached.
        bytes_before = self._total_bytes + batches.position[first:stop] - begin
        multiples = bytes_before // self._max_bytes
        is_split = np.diff(multiples, prepend=self._multiples) > 0
        self.offsets += (batches.last_offset[first:stop][is_split] + 1).tolist()
        self._multiples = max(self._multiples, int(multiples[-1]) if multiples.size else 0)
        self._total_bytes += max(0, end - begin)
        # If another one is reached after the last known batch, split at the end of the segment.
        multiples_at_end = self._total_bytes // self._max_bytes
        if multiples_at_end > self._multiples and segment_end < self._wanted.end:
            self._multiples = multiples_at_end
            self.offsets.append(segment_end)


def _known_batches(segment: OpenSegment, max_bytes: int) -> IndexEntries:
    """Return batches that are at most about `max_bytes` apart: indexed ones, or all of them."""
    entries = read_offset_index(segment)
    if entries.count and not matches_log(segment, entries.at(-1)):
        entries = IndexEntries(entries.last_offset[:0], entries.position[:0])
    position = entries.at(-1).position if entries.count else 0
    if segment.size_bytes - position <= max_bytes:
        return entries
    headers = segment.headers(position)
    scanned = [(header.last_offset, header_position) for header_position, header in headers]
    # The scan begins with the batch of the last entry.
    further = np.array(scanned[1 if entries.count else 0 :], np.int64).reshape(-1, 2)
    return IndexEntries(
        np.concatenate((entries.last_offset, further[:, 0])),
        np.concatenate((entries.position, further[:, 1])),
    )
