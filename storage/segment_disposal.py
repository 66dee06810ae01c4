"""How segments leave a log: their files are renamed at once and removed after
file.delete.delay.ms, and so is the producers' snapshot that stands at their beginning.
"""

from collections.abc import Sequence

from .deletions import Deletions
from .filenames import FileState
from .producer_state import ProducerStates
from .segment import Segment
from .segment_list import SegmentList


class SegmentDisposal:
    """Takes segments out of the list of one log."""

    __slots__ = ("_deletions", "_producers", "_segments")

    def __init__(
        self, segments: SegmentList, producers: ProducerStates, deletions: Deletions
    ) -> None:
        self._segments = segments
        self._producers = producers
        self._deletions = deletions

    def delete(self, doomed: Sequence[Segment], due_ms: int) -> None:
        """Rename them. Raises OSError: that segment and those after it are still there."""
        for segment in doomed:
            segment.rename(FileState.DELETED)
            self._segments.remove(segment)
            self._deletions.add(segment.paths(), due_ms)
            self._drop_snapshot(segment, due_ms)

    def replace(self, old: Sequence[Segment], new: Sequence[Segment], due_ms: int) -> None:
        """The `old` ones have been renamed, and the `new` ones are there.

        Raises OSError: a snapshot could not be renamed, but the segments are replaced.
        """
        for segment in old:
            self._segments.remove(segment)
            self._deletions.add(segment.paths(), due_ms)
        for segment in new:
            self._segments.add(segment)
        for segment in old:
            if not self._segments.holds(segment.base_offset):
                self._drop_snapshot(segment, due_ms)

    def _drop_snapshot(self, segment: Segment, due_ms: int) -> None:
        snapshot = self._producers.mark_snapshot_deleted(segment.base_offset)
        if snapshot is not None:
            self._deletions.add([snapshot], due_ms)
