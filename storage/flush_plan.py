"""The files to sync so that a log survives a power cut up to an offset.

The plan is made on the broker's thread and may be carried out on another thread, while the log is
used. It references the open files, so they stay open as long as the plan exists. Afterwards
`PartitionLog.mark_flushed` moves the recovery point, on the broker's thread. Kafka:
UnifiedLog.flush, and the "flush-log" task that follows every roll.
"""

from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from .files import Files, OpenFile


class FlushPlan(Struct, frozen=True, kw_only=True):
    """Files to sync, and the offset below which everything is synced once `run` has returned."""

    files: Files
    up_to_offset: int
    truncations: int  # the log's counts of truncations and renames when the plan was made
    renames: int
    open_files: list[OpenFile] = field(default_factory=list)
    # By path: the number of its last write, see UnsyncedFiles.
    small_files: dict[Path, int] = field(default_factory=dict)
    directory: Path | None = None  # to sync, if names in it changed since the last flush
    parent: Path | None = None  # to sync, if the directory itself is new or renamed

    def run(self) -> None:
        """Sync all files, on any thread. Raises OSError: then nothing is flushed."""
        for file in self.open_files:
            self.files.fsync(file)
        # A file, or the whole log, may be renamed for deletion while this runs; then it need not be
        # synced. A test whether the file exists would not help: it may be renamed after that.
        for path in self.small_files:
            with suppress(FileNotFoundError):
                self.files.fsync(self.files.open(path))
        if self.directory is not None:
            with suppress(FileNotFoundError):
                self.files.fsync_directory(self.directory)
        if self.parent is not None:
            self.files.fsync_directory(self.parent)
