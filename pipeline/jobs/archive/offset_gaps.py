"""Finds the offsets of a range that have no record."""

import numpy as np

from odradek.pipeline.decoding.varints import Ints
from odradek.pipeline.jobs.offset_spans import Span

_MAX_LISTED = 20


class OffsetGaps:
    """Takes the offsets of a range's records in order.

    `absent` is the number of offsets without a record. `listed` are the first ranges of such
    offsets. `next_offset` is the first offset that is not counted yet.
    """

    def __init__(self, start: int) -> None:
        self.listed: list[Span] = []
        self.absent = 0
        self.next_offset = start

    def add(self, offsets: Ints) -> None:
        """Add the next records, in order of offset."""
        before = np.concatenate(([self.next_offset - 1], offsets[:-1]))
        for row in np.flatnonzero(offsets - before > 1)[: _MAX_LISTED - len(self.listed)].tolist():
            self.listed.append(Span(int(before[row]) + 1, int(offsets[row])))
        self.absent += int(offsets[-1]) + 1 - self.next_offset - offsets.size
        self.next_offset = int(offsets[-1]) + 1

    def skip_lost(self, lost: Span) -> None:
        """Count the offsets before the lost ones, and leave these out."""
        self.finish(lost.start)
        self.next_offset = lost.end

    def finish(self, end: int) -> None:
        """Count the offsets without a record before `end`."""
        if end > self.next_offset:
            if len(self.listed) < _MAX_LISTED:
                self.listed.append(Span(self.next_offset, end))
            self.absent += end - self.next_offset
            self.next_offset = end
