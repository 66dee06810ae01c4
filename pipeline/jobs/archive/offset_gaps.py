"""Finds the offsets of a range that have no record."""

import numpy as np

from odradek.pipeline.decoding.varints import Ints
from odradek.pipeline.jobs.offset_spans import Span

_MAX_LISTED = 20


class OffsetGaps:
    """Takes the offsets of a range's records in order. `absent` counts offsets without a record.

    `first` are the first ranges of these. `next` is the first offset not yet accounted for.
    """

    def __init__(self, start: int) -> None:
        self.first: list[Span] = []
        self.absent = 0
        self.next = start

    def add(self, offsets: Ints) -> None:
        """Add the next records, in order of offset."""
        before = np.concatenate(([self.next - 1], offsets[:-1]))
        for row in np.flatnonzero(offsets - before > 1)[: _MAX_LISTED - len(self.first)].tolist():
            self.first.append(Span(int(before[row]) + 1, int(offsets[row])))
        self.absent += int(offsets[-1]) + 1 - self.next - offsets.size
        self.next = int(offsets[-1]) + 1

    def skip_to(self, offset: int, *, lost_from: int) -> None:
        """Leave out lost offsets, which are counted elsewhere."""
        self.end(lost_from)
        self.next = offset

    def end(self, offset: int) -> None:
        """Count the rest of the range, which ends at `offset`."""
        if offset > self.next:
            if len(self.first) < _MAX_LISTED:
                self.first.append(Span(self.next, offset))
            self.absent += offset - self.next
            self.next = offset
