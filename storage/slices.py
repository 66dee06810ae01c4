"""Finds the slices of segment files that Fetch returns.

Most readers continue where their last slice ended: in the middle of the log, or at its end, where
they wait for the next batch. The file positions of a few such offsets are kept per log, so that
they need no search. For other offsets the offset index and a few batch headers are read. That
position is kept, too, because a reader that may not see the batch there yet will ask again.

A slice ends at the end of a batch. Kafka may cut a batch in two; the consumer then fetches that
batch again.
"""

from odradek.protocol.schema import SplicedRecords

from .files import OpenFile
from .segment import FoundBatch, Segment, WholeBatches
from .segment_list import SegmentList

POSITIONS_KEPT = 16


class RecordsSlice(SplicedRecords):
    """Whole batches in a segment's file. The slice keeps the file open."""

    __slots__ = ("file", "position")

    def __init__(self, file: OpenFile, position: int, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.file = file
        self.position = position


class Slicer:
    """Cuts slices out of a log's segments."""

    __slots__ = ("_positions", "_segments")

    def __init__(self, segments: SegmentList) -> None:
        self._segments = segments
        self._positions: dict[int, tuple[Segment, int]] = {}  # by offset

    def forget(self) -> None:
        """Drop all positions, because segments were removed or truncated.

        Any thread may call it when the log goes offline: one that keeps a position has its dict.
        """
        self._positions = {}

    def cut(
        self, offset: int, end_offset: int, max_bytes: int, *, at_least_one_batch: bool
    ) -> RecordsSlice:
        """A slice of one segment, from the batch that holds `offset`; the log ends at `end_offset`.

        Raises OSError, CorruptRecordError.
        """
        if offset == end_offset:
            active = self._segments.active
            self._keep(offset, active, active.size_bytes)
            return RecordsSlice(active.file, active.size_bytes, 0)
        segment, position = self._positions.get(offset) or (None, 0)
        if segment is None or position >= segment.size_bytes:
            where = self._find(offset)
            if where is None:
                return RecordsSlice(self._segments.active.file, 0, 0)
            segment, (position, _) = where
            self._keep(offset, segment, position)
        size = segment.size_bytes - position
        if size > max_bytes:
            whole = segment.whole_batches(position, max_bytes)
            if whole is None:
                first = segment.batch_at(position).header
                if not at_least_one_batch:
                    return RecordsSlice(segment.file, position, 0)
                whole = WholeBatches(first.size_bytes, first.next_offset)
            size = whole.size_bytes
            self._keep(whole.next_offset, segment, position + size)
        elif segment is self._segments.active:
            self._keep(end_offset, segment, segment.size_bytes)
        return RecordsSlice(segment.file, position, size)

    def _find(self, offset: int) -> tuple[Segment, FoundBatch] | None:
        """The batch that holds `offset`, or the first one after it.

        Returns None if truncation or cleaning left no such batch.
        """
        first = max(self._segments.floor_index(offset), 0)
        for index in range(first, len(self._segments)):
            segment = self._segments[index]
            found = segment.find(offset)
            if found is not None:
                return segment, found
            segment.check_end(offset)  # else records would be skipped silently
        return None

    def _keep(self, offset: int, segment: Segment, position: int) -> None:
        positions = self._positions
        positions[offset] = (segment, position)
        if len(positions) > POSITIONS_KEPT:
            del positions[next(iter(positions))]
