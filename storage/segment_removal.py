"""How segments leave a log: their files are renamed at once and removed after
file.delete.delay.ms, and so is the producers' snapshot that stands at their beginning.
"""

from collections.abc import Sequence

from .deletions import Deletions
from .filenames import FileState
from .producer_state import ProducerStates, SnapshotRename
from .segment import Segment
from .segment_list import SegmentList


class SegmentRemoval:
    """Segments on their way out of a log.

    `detach` is called on the log's thread and touches no file, `run` on any thread, and then
    `finish` on the log's again. Meanwhile nobody may rename the log's directory.
    """

    __slots__ = (
        "_deletions",
        "_due_ms",
        "_old",
        "_producers",
        "_renamed",
        "_segments",
        "_snapshots",
        "is_finished",
    )

    def __init__(
        self,
        old: Sequence[Segment],
        segments: SegmentList,
        producers: ProducerStates,
        deletions: Deletions,
        due_ms: int,
    ) -> None:
        self._old = old
        self._snapshots: list[SnapshotRename] = []
        self._segments = segments
        self._producers = producers
        self._deletions = deletions
        self._due_ms = due_ms
        self._renamed: list[Segment] = []
        self.is_finished = not old

    @property
    def base_offset(self) -> int:
        """Where the first of the segments began."""
        return self._old[0].base_offset

    def detach(self) -> None:
        """The log does not have them any more."""
        for segment in self._old:
            self._segments.remove(segment)
            snapshot = self._producers.release_snapshot(segment.base_offset)
            if snapshot is not None:
                self._snapshots.append(snapshot)

    def run(self) -> None:
        """Rename the files. Raises OSError: those of that segment, and all after it, are left."""
        for segment in self._old:
            segment.rename(FileState.DELETED)
            self._renamed.append(segment)
        for snapshot in self._snapshots:
            snapshot.run()

    def finish(self) -> None:
        """What was renamed is removed later; what was not is back in the log."""
        for segment in self._old:
            if segment in self._renamed:
                self._deletions.add(segment.paths(), self._due_ms)
            else:
                self._segments.add(segment)
        self._deletions.add([snapshot.target for snapshot in self._snapshots], self._due_ms)
        self.is_finished = True


class SegmentRemover:
    """Takes segments out of the list of one log."""

    __slots__ = ("_deletions", "_producers", "_segments")

    def __init__(
        self, segments: SegmentList, producers: ProducerStates, deletions: Deletions
    ) -> None:
        self._segments = segments
        self._producers = producers
        self._deletions = deletions

    def delete(self, old: Sequence[Segment], due_ms: int) -> None:
        """Rename them. Raises OSError: that segment and those after it are still there."""
        removal = self.begin(old, due_ms)
        removal.detach()
        try:
            removal.run()
        finally:
            removal.finish()

    def begin(self, old: Sequence[Segment], due_ms: int) -> SegmentRemoval:
        """The same in steps."""
        return SegmentRemoval(old, self._segments, self._producers, self._deletions, due_ms)

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
                snapshot = self._producers.release_snapshot(segment.base_offset)
                if snapshot is not None:
                    snapshot.run()
                    self._deletions.add([snapshot.target], due_ms)
