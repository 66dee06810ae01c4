"""Removes segments from a log.

Their files are renamed at once and removed after file.delete.delay.ms. The producer snapshot at the
base offset of each segment is removed with it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from .deletions import Deletions
from .filenames import FileState
from .producer_state import ProducerStates, SnapshotRename
from .segment import Segment
from .segment_list import SegmentList


class SegmentRemoval:
    """The removal of segments from a log, in three steps.

    `detach` is called on the log's thread and uses no file. `run` may be called on any thread.
    `finish` is called on the log's thread. The log's directory must not be renamed meanwhile.
    """

    def __init__(
        self,
        old: Sequence[Segment],
        segments: SegmentList,
        producers: ProducerStates,
        deletions: Deletions,
        delay_ms: int,
    ) -> None:
        self._old = old
        self._snapshots: list[SnapshotRename] = []
        self._segments = segments
        self._producers = producers
        self._deletions = deletions
        self._delay_ms = delay_ms
        self._renamed = 0  # so many segments
        self._paths: list[Path] = []  # to be removed
        self.is_finished = not old

    @property
    def base_offset(self) -> int:
        """The base offset of the first of the segments."""
        return self._old[0].base_offset

    def detach(self) -> None:
        """Remove them from the log's list of segments."""
        self._segments.replace(self._old, ())
        bases = (segment.base_offset for segment in self._old)
        self._snapshots = self._producers.release_snapshots(bases)

    def run(self) -> None:
        """Rename the files. Raises OSError: that segment and all after it keep their names.

        They are closed here, because a file that is open keeps its space when it is removed, and
        closing the last descriptor then takes as long as the removal.
        """
        for segment in self._old:
            segment.rename(FileState.DELETED)
            segment.release_files()
            self._renamed += 1
            self._paths += segment.paths()
        for snapshot in self._snapshots:
            self._paths.append(snapshot.run())

    def finish(self) -> None:
        """Schedule the removal of renamed segments; add the others to the log again."""
        if self._renamed < len(self._old):
            self._segments.replace((), self._old[self._renamed :])
        self._deletions.add(self._paths, self._delay_ms)
        self.is_finished = True


class SegmentRemover:
    """Removes segments from one log."""

    __slots__ = ("_deletions", "_producers", "_segments")

    def __init__(
        self, segments: SegmentList, producers: ProducerStates, deletions: Deletions
    ) -> None:
        self._segments = segments
        self._producers = producers
        self._deletions = deletions

    def delete(self, old: Sequence[Segment], delay_ms: int) -> None:
        """Remove segments. Raises OSError: that segment and those after it stay in the log."""
        removal = self.begin(old, delay_ms)
        removal.detach()
        try:
            removal.run()
        finally:
            removal.finish()

    def begin(self, old: Sequence[Segment], delay_ms: int) -> SegmentRemoval:
        """Begin the same in steps, see SegmentRemoval."""
        return SegmentRemoval(old, self._segments, self._producers, self._deletions, delay_ms)

    def replace(
        self, old: Sequence[Segment], new: Iterable[Segment], paths: Iterable[Path], delay_ms: int
    ) -> None:
        """Replace `old` segments, whose files were renamed to `paths`, by `new` ones.

        The old ones are closed, see SegmentRemoval.run.
        """
        self._segments.replace(old, new)
        for segment in old:
            segment.release_files()
        self._deletions.add(paths, delay_ms)

    def remove_snapshots(self, old: Iterable[Segment], delay_ms: int) -> None:
        """Remove the snapshots of segments that were replaced. Raises OSError."""
        for segment in old:
            if not self._segments.holds(segment.base_offset):
                for snapshot in self._producers.release_snapshots([segment.base_offset]):
                    self._deletions.add([snapshot.run()], delay_ms)
