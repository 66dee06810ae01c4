"""Files and renames of a log that are not yet fsynced.

A small file (an index of a closed segment, a snapshot, a checkpoint) is synced by the next flush,
not when it is written. Its path is kept here with a sequence number of its last write, so that a
file that is written again during a flush is synced once more. The result of a flush is discarded if
the log was truncated or moved to other files while the flush ran.
"""

from collections.abc import Iterable
from pathlib import Path

from .files import Files
from .flush_plan import FlushPlan
from .segment_list import SegmentList

SEGMENTS_OF_A_PLAN = 20


class UnsyncedFiles:
    """The unsynced files of one log. Used on the broker's thread only."""

    __slots__ = (
        "_files",
        "_is_directory_synced",
        "_renames",
        "_small_files",
        "_writes",
        "planned_offset",
        "truncations",
    )

    def __init__(self, files: Files, *, is_directory_synced: bool) -> None:
        """`is_directory_synced`: whether the directory's entry in its parent is synced."""
        self._files = files
        self._small_files: dict[Path, int] = {}
        self._writes = 0
        self._is_directory_synced = is_directory_synced
        self._renames = 0
        self.planned_offset = 0  # the highest end of a plan
        self.truncations = 0  # a flush planned before a truncation is discarded

    def add(self, path: Path) -> None:
        """Record that a file, or its name, has changed."""
        self._writes += 1
        self._small_files[path] = self._writes

    def note_truncation(self) -> None:
        """Record that the log was truncated: the result of a running flush is discarded."""
        self.truncations += 1

    def note_rename(self) -> None:
        """Record that the log's directory was renamed: a running flush may not cover that."""
        self._renames += 1
        self._is_directory_synced = False

    def move_to(self, directory: Path, small_files: Iterable[Path]) -> None:
        """Switch to copies of the log's files; `small_files` must be synced, too."""
        self.note_truncation()
        self.note_rename()
        for path in [*self._small_files, *small_files]:
            self._small_files.pop(path, None)
            self.add(directory / path.name)

    def plan(
        self, segments: SegmentList, directory: Path, recovery_point: int, end_offset: int
    ) -> FlushPlan | None:
        """Plan the sync of everything before `end_offset`; None if there is nothing to sync.

        It ends earlier if there are many segments, as a recovery leaves them: their files are open
        until it was carried out. Writes the indexes. Raises OSError.
        """
        if end_offset <= recovery_point and not self._small_files:
            return None
        unflushed = segments.between(recovery_point, end_offset)
        if len(unflushed) > SEGMENTS_OF_A_PLAN:
            end_offset = unflushed[SEGMENTS_OF_A_PLAN].base_offset
            del unflushed[SEGMENTS_OF_A_PLAN:]
        self.planned_offset = max(self.planned_offset, end_offset)
        new_segments = any(segment.base_offset >= recovery_point for segment in unflushed)
        return FlushPlan(
            files=self._files,
            up_to_offset=end_offset,
            truncations=self.truncations,
            renames=self._renames,
            open_files=[file for segment in unflushed for file in segment.sync_targets()],
            small_files=dict(self._small_files),
            directory=directory if new_segments or self._small_files else None,
            parent=None if self._is_directory_synced else directory.parent,
        )

    def mark_synced(self, plan: FlushPlan) -> bool:
        """Record that the plan was carried out.

        Returns False, and changes nothing, if the log was truncated or moved after the plan was
        made.
        """
        if plan.truncations != self.truncations:
            return False
        for path, written in plan.small_files.items():
            if self._small_files.get(path) == written:
                del self._small_files[path]
        if plan.parent is not None and plan.renames == self._renames:
            self._is_directory_synced = True
        return True
