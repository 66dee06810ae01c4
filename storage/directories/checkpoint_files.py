"""Writes the checkpoint files with an offset per log. Kafka: OffsetCheckpointFile.

Several processes may serve the logs of a directory, but only one process writes its files. Each
file is the union of their parts. `process` is 0 for the process that writes. A worker has an object
of this class too: its `save` sends its part to that process.

A file whose content would not change is not written.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock

from odradek.storage.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, int]

THIS_PROCESS = 0


class CheckpointFiles:
    """The files by path. All methods may be called on any thread, and raise what `save` raises.

    Only one thread at a time writes a file, and computes its content after the previous writer is
    done. So the last content is the newest, and no temporary file is renamed by another thread.
    """

    def __init__(self, save: Callable[[Path, Offsets], None]) -> None:
        self._save = save
        self._parts: dict[Path, dict[int, Offsets]] = {}
        self._saved: dict[Path, Offsets] = {}  # the content on disk
        self._locks: dict[Path, Lock] = {}

    def found(self, path: Path, process: int, offsets: Offsets) -> None:
        """Note the part of a process, which was in the file at start."""
        self._parts.setdefault(path, {})[process] = offsets

    def write(
        self, path: Path, content: Callable[[], Offsets], process: int = THIS_PROCESS
    ) -> None:
        """Replace the part of a process, and write the file if it has changed."""
        with self._locks.setdefault(path, Lock()):
            parts = self._parts.setdefault(path, {})
            parts[process] = content()
            offsets = {key: each for part in parts.values() for key, each in part.items()}
            if self._saved.get(path) != offsets:
                self._save(path, offsets)
                self._saved[path] = offsets
