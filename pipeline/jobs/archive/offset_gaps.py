"""Which offsets of a range have no record, told while its records go by."""

import numpy as np

from odradek.pipeline.decoding.varints import Ints
from odradek.pipeline.jobs.offset_spans import Span

_MOST_TOLD = 20


class OffsetGaps:
    """`absent` counts such offsets; `first` are the first ranges of them.
    `next` is the offset that nothing is known of yet."""

    def __init__(self, start: int) -> None:
        self.first: list[Span] = []
        self.absent = 0
        self.next = start

    def see(self, offsets: Ints) -> None:
        """The next records, by rising offsets."""
        before = np.concatenate(([self.next - 1], offsets[:-1]))
        for row in np.flatnonzero(offsets - before > 1)[: _MOST_TOLD - len(self.first)].tolist():
            self.first.append(Span(int(before[row]) + 1, int(offsets[row])))
        self.absent += int(offsets[-1]) + 1 - self.next - offsets.size
        self.next = int(offsets[-1]) + 1

    def skip_to(self, offset: int, *, lost_from: int) -> None:
        """What lies between is not there any more; it counts elsewhere."""
        self.end(lost_from)
        self.next = offset

    def end(self, offset: int) -> None:
        """The range ends there."""
        if offset > self.next:
            if len(self.first) < _MOST_TOLD:
                self.first.append(Span(self.next, offset))
            self.absent += offset - self.next
            self.next = offset
