"""What of a log a power cut might take back, besides its records: small files and names.

A small file (an index of a closed segment, a snapshot, a checkpoint) is synced with the next flush
and not when it is written. It stands here by the number of its last write: one that is written
again while a flush is under way is to be synced once more. Where the log was cut meanwhile, or went
on in other files, that flush counts for nothing.
"""

from collections.abc import Iterable
from pathlib import Path

from .files import Files
from .flush_plan import FlushPlan
from .segment_list import SegmentList


class UnsyncedFiles:
    """The books of one log, kept on the broker's thread."""

    __slots__ = ("_files", "_is_directory_synced", "_small_files", "_truncations", "_writes")

    def __init__(self, files: Files, *, is_named_on_disk: bool) -> None:
        """`is_named_on_disk`: the log's directory would be found after a power cut."""
        self._files = files
        self._small_files: dict[Path, int] = {}
        self._writes = 0
        self._is_directory_synced = is_named_on_disk
        self._truncations = 0  # how often the end of the log was taken back

    def add(self, path: Path) -> None:
        """That file, or its name, has changed."""
        self._writes += 1
        self._small_files[path] = self._writes

    def note_truncation(self) -> None:
        """A flush that is under way is of records that are gone."""
        self._truncations += 1

    def note_rename(self) -> None:
        """The log's directory has a new name."""
        self._is_directory_synced = False

    def move_to(self, directory: Path, small_files: Iterable[Path]) -> None:
        """The log goes on in copies of its files; `small_files` are still to be synced, too."""
        self.note_truncation()
        self.note_rename()
        for path in [*self._small_files, *small_files]:
            self._small_files.pop(path, None)
            self.add(directory / path.name)

    def plan(
        self, segments: SegmentList, directory: Path, recovery_point: int, end_offset: int
    ) -> FlushPlan | None:
        """What to sync for everything before `end_offset`; None: nothing is to do. Raises OSError,
        for indexes are written now.
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
        """The plan was carried out; False: it counts for nothing."""
        if plan.truncations != self._truncations:
            return False
        for path, written in plan.small_files.items():
            if self._small_files.get(path) == written:
                del self._small_files[path]
        if plan.parent is not None:
            self._is_directory_synced = True
        return True
