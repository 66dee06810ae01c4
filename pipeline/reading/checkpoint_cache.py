"""Caches the checkpoint files of log directories, which have a line for each partition."""

from collections.abc import Mapping
from pathlib import Path

from odradek.storage.checkpoints import CheckpointError, read_offsets
from odradek.storage.files import Files
from odradek.storage.topic_partition import TopicPartition


class CheckpointCache:
    """The contents of files. A broker replaces a file; it never changes it.

    They are kept because each of a node's thousands of partitions looks up its own line.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        # By path: the file's identity and content.
        self._read: dict[Path, tuple[tuple[int, int, int], Mapping[TopicPartition, int]]] = {}

    def offsets(self, path: Path) -> Mapping[TopicPartition, int] | None:
        """Return the offsets; None without a file. Raises OSError, also if it is damaged."""
        try:
            status = path.stat()
        except FileNotFoundError:
            return None
        identity = status.st_ino, status.st_mtime_ns, status.st_size
        cached_identity, offsets = self._read.get(path, (None, {}))
        if cached_identity != identity:
            offsets = self._offsets(path)
            self._read[path] = identity, offsets
        return offsets

    def _offsets(self, path: Path) -> Mapping[TopicPartition, int]:
        try:
            return read_offsets(self._files, path)
        except CheckpointError as error:
            raise OSError(
                f"{error}. The broker that uses the directory replaces the file within a minute"
            ) from error
