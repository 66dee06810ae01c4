"""Files and renames of a log that are not yet fsynced.

A small file (an index of a closed segment, a snapshot, a checkpoint) is synced by the next flush,
not when it is written. It is kept here with the number of its last write, so that a file that is
written again during a flush is synced once more. A flush is ignored if the log was truncated or
moved to other files while it ran.
"""

from collections.abc import Iterable
from pathlib import Path

from .files import Files
from .flush_plan import FlushPlan
from .segment_list import SegmentList


class UnsyncedFiles:
    """The unsynced files of one log. Used on the broker's thread only."""

    __slots__ = ("_files", "_is_directory_synced", "_small_files", "_truncations", "_writes")

    def __init__(self, files: Files, *, is_named_on_disk: bool) -> None:
        """`is_named_on_disk`: the name of the log's directory is synced."""
        self._files = files
        self._small_files: dict[Path, int] = {}
        self._writes = 0
        self._is_directory_synced = is_named_on_disk
        self._truncations = 0  # how often the log was truncated

    def add(self, path: Path) -> None:
        """Record that a file, or its name, has changed."""
        self._writes += 1
        self._small_files[path] = self._writes

    def note_truncation(self) -> None:
        """Record that the log was truncated: a flush that is running is ignored."""
        self._truncations += 1

    def note_rename(self) -> None:
        """Record that the log's directory was renamed."""
        self._is_directory_synced = False

    def move_to(self, directory: Path, small_files: Iterable[Path]) -> None:
        """Switch to copies of the log's files; `small_files` are among those not yet synced."""
        self.note_truncation()
        self.note_rename()
        for path in [*self._small_files, *small_files]:
            self._small_files.pop(path, None)
            self.add(directory / path.name)

    def plan(
        self, segments: SegmentList, directory: Path, recovery_point: int, end_offset: int
    ) -> FlushPlan | None:
        """Plan the sync of everything before `end_offset`; None if there is nothing to sync.

        Writes the indexes. Raises OSError.
        """
        if end_offset <= recovery_point and not self._small_files:
            return None
        touched = segments.between(recovery_point, end_offset)
        new_segments = any(segment.base_offset >= recovery_point for segment in touched)
        return FlushPlan(
            files=self._files,
            up_to_offset=end_offset,
            truncations=self._truncations,
            open_files=[file for segment in touched for file in segment.sync_targets()],
            small_files=dict(self._small_files),
            directory=directory if new_segments or self._small_files else None,
            parent=None if self._is_directory_synced else directory.parent,
        )

    def mark_synced(self, plan: FlushPlan) -> bool:
        """Record that the plan was carried out; False if it must be ignored."""
        if plan.truncations != self._truncations:
            return False
        for path, written in plan.small_files.items():
            if self._small_files.get(path) == written:
                del self._small_files[path]
        if plan.parent is not None:
            self._is_directory_synced = True
        return True
