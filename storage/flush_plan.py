"""What must be synced so that a log survives a power cut up to an offset.

The plan is drawn on the broker's thread and may be carried out on another while the log goes on:
it holds the open files themselves, which stay open for as long as it lives. Back on the broker's
thread `PartitionLog.mark_flushed` moves the recovery point. Kafka: UnifiedLog.flush, and the
"flush-log" task that follows every roll.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .files import Files, OpenFile


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushPlan:
    """Files to sync, and the offset below which everything is safe once `run` has returned."""

    files: Files
    up_to_offset: int
    truncations: int  # the log's count of truncations when the plan was drawn
    open_files: list[OpenFile] = field(default_factory=list)
    small_files: dict[Path, int] = field(default_factory=dict)  # and which write of each it is
    directory: Path | None = None  # where segments were made since the last flush
    parent: Path | None = None  # where that directory itself was made since then

    def run(self) -> None:
        """Sync them all, on any thread. Raises OSError: then nothing may count as flushed."""
        for file in self.open_files:
            self.files.fsync(file)
        # A file, or the whole log, may be renamed to be deleted while this runs, and then need not
        # be synced. It may also happen between a question whether the file exists and its opening.
        for path in self.small_files:
            with suppress(FileNotFoundError):
                self.files.fsync(self.files.open(path))
        if self.directory is not None:
            with suppress(FileNotFoundError):
                self.files.fsync_directory(self.directory)
        if self.parent is not None:
            self.files.fsync_directory(self.parent)
