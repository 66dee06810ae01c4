"""Finds the partitions in log directories.

Directories that are to be deleted, are being moved, or are stray, are not partitions. A directory
that does not belong to a log is ignored. A broker would refuse to start.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from odradek.storage.checkpoints import CheckpointError, read_topic_id
from odradek.storage.filenames import (
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    DirectoryState,
    parse_partition_directory,
)
from odradek.storage.files import Files
from odradek.storage.log_reader import LogReader
from odradek.storage.topic_partition import TopicPartition

from .checkpoint_cache import CheckpointCache
from .high_watermarks import HighWatermarks
from .missing_files import read_until_found

Result = TypeVar("Result")


class LogDirectories:
    """The directories of `log.dirs`. Methods raise OSError if they cannot be read."""

    def __init__(self, paths: Iterable[Path], files: Files | None = None) -> None:
        self.paths = tuple(paths)
        self.files = files or Files()
        self._checkpoints = CheckpointCache(self.files)
        self._high_watermarks = HighWatermarks(self.files, self.paths, self._checkpoints)

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions, sorted.

        Lists again while a partition seems to be gone. A broker may move one to a directory that
        has just been listed, from one that has not: it is in none of the lists.
        """
        listed = self._listed()
        while len(self.paths) > 1:
            before, listed = listed, self._listed()
            if before <= listed:
                break
        return sorted(listed)

    def find(self, partition: TopicPartition) -> Path | None:
        """Return a partition's directory now, or None. A broker may move it at any time."""
        for path in 2 * self.paths:  # it may be moved to the first while the second is looked at
            directory = path / str(partition)
            if self.files.is_directory(directory):
                return directory
        return None

    def required(self, partition: TopicPartition) -> Path:
        """Return a partition's directory. Raises FileNotFoundError."""
        directory = self.find(partition)
        if directory is None:
            places = ", ".join(map(str, self.paths))
            raise FileNotFoundError(f"partition {partition} not found in {places}")
        return directory

    def reader(self, partition: TopicPartition) -> LogReader:
        """Return a reader of the partition's directory now. Raises FileNotFoundError."""
        return LogReader(self.required(partition), self.files, reads_swaps=True)

    def retry(self, partition: TopicPartition, read: Callable[[LogReader], Result]) -> Result:
        """Call `read` with the partition's reader, again if a file is missing that it listed.

        Raises FileNotFoundError if the partition does not exist, or if the file stays missing.
        """
        return read_until_found(
            lambda: read(self.reader(partition)), lambda: self.find(partition) is not None
        )

    def topic_id(self, directory: Path) -> bytes | None:
        """Return the id of the directory's topic; None if no file contains it."""
        try:
            return read_topic_id(self.files, directory / PARTITION_METADATA)
        except CheckpointError:
            return None

    def checkpointed_start(self, partition: TopicPartition) -> int:
        """Return the checkpointed log start offset, or 0. Records before it were deleted."""
        directory = self.find(partition)
        if directory is None:
            return 0
        path = directory.parent / LOG_START_OFFSET_CHECKPOINT
        return (self._checkpoints.offsets(path) or {}).get(partition, 0)

    def high_watermark(self, partition: TopicPartition, directory: Path, log_end: int) -> int:
        """Return the high watermark of the log in `directory`, at most `log_end`.

        Raises FileNotFoundError if the log was deleted or moved after its end was read.
        """
        topic_id = self.topic_id(directory)
        if topic_id is None and not self.files.is_directory(directory):
            raise FileNotFoundError(f"{directory} was deleted or moved while it was read")
        return self._high_watermarks.of(partition, topic_id, directory.parent, log_end)

    def _listed(self) -> set[TopicPartition]:
        return {partition for path in self.paths for partition in self._listed_in(path)}

    def _listed_in(self, path: Path) -> Iterator[TopicPartition]:
        for name in self.files.list_directory(path):
            try:
                parsed = parse_partition_directory(name)
            except ValueError:
                continue
            if parsed.state is DirectoryState.LIVE and self.files.is_directory(path / name):
                yield TopicPartition(parsed.topic, parsed.partition)
