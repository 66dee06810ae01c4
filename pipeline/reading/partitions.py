"""Which partitions lie in which log directories.

Directories that are about to be deleted, moved or are unknown to the broker are no partitions, and
what is no log's directory at all is not our business: the broker refuses to start on it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from odradek.storage.checkpoints import CheckpointError, read_offsets, read_topic_id
from odradek.storage.filenames import (
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    DirectoryState,
    parse_partition_directory,
    partition_directory,
)
from odradek.storage.files import Files


class TopicPartition(NamedTuple):
    """A partition, by name."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return partition_directory(self.topic, self.partition)


class LogDirectories:
    """The directories of `log.dirs`. Raises OSError where they cannot be read."""

    def __init__(self, paths: Iterable[Path], files: Files | None = None) -> None:
        self.paths = tuple(paths)
        self.files = files or Files()
        # By path: which file it was, and what it said. A node of thousands of partitions has each
        # of them ask for its own line.
        self._checkpoints: dict[Path, tuple[tuple[int, int, int], dict[tuple[str, int], int]]] = {}

    def partitions(self) -> list[TopicPartition]:
        """All that are there, sorted."""
        return sorted({partition for path in self.paths for partition in self._within(path)})

    def find(self, partition: TopicPartition) -> Path | None:
        """Where a partition lies: it may be moved from one directory to another at any time."""
        for path in self.paths:
            directory = path / str(partition)
            if self.files.is_directory(directory):
                return directory
        return None

    def required(self, partition: TopicPartition) -> Path:
        """The same. Raises FileNotFoundError."""
        directory = self.find(partition)
        if directory is None:
            places = ", ".join(map(str, self.paths))
            raise FileNotFoundError(f"there is no partition {partition} in {places}")
        return directory

    def topic_id(self, directory: Path) -> bytes | None:
        """The id of the topic that lies there; None where no file tells."""
        try:
            return read_topic_id(self.files, directory / PARTITION_METADATA)
        except CheckpointError:
            return None

    def checkpointed_start(self, partition: TopicPartition) -> int:
        """The log start offset that the broker has noted: older records have been deleted."""
        directory = self.find(partition)
        if directory is None:
            return 0
        return self._noted_in(directory.parent / LOG_START_OFFSET_CHECKPOINT).get(partition, 0)

    def _noted_in(self, path: Path) -> dict[tuple[str, int], int]:
        """What a checkpoint says; a broker puts a new file in the place of the old one."""
        try:
            found = path.stat()
        except FileNotFoundError:
            return {}
        which = found.st_ino, found.st_mtime_ns, found.st_size
        known = self._checkpoints.get(path)
        if known is None or known[0] != which:
            known = self._checkpoints[path] = which, read_offsets(self.files, path)
        return known[1]

    def _within(self, path: Path) -> Iterator[TopicPartition]:
        for name in self.files.list_directory(path):
            try:
                parsed = parse_partition_directory(name)
            except ValueError:
                continue
            if parsed.state is DirectoryState.LIVE and self.files.is_directory(path / name):
                yield TopicPartition(parsed.topic, parsed.partition)
