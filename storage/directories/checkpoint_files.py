"""Writes the checkpoint files with an offset per log. Kafka: OffsetCheckpointFile.

A file whose content would not change is not written.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock

from odradek.storage.checkpoints import CheckpointError, read_offsets, write_offsets
from odradek.storage.files import Files
from odradek.storage.topic_partition import TopicPartition

Offsets = Mapping[TopicPartition, int]


class CheckpointFiles:
    """The files by path. `write` may be called on any thread.

    Only one thread at a time writes a file, and computes its content after the previous writer is
    done. So the last content is the newest, and no temporary file is renamed by another thread.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        # The content on disk that this process has written, and what it has found there before;
        # None: it is not known.
        self._saved: dict[Path, Offsets | None] = {}
        self._found: dict[Path, Offsets | None] = {}
        self._locks: dict[Path, Lock] = {}

    def write(self, path: Path, content: Callable[[], Offsets]) -> None:
        """Write a file if its content has changed. Raises OSError."""
        with self._locks.setdefault(path, Lock()):
            saved = self._saved.get(path)
            self._saved[path] = None  # after an error it is not known
            offsets = content()
            if saved != offsets:
                write_offsets(self._files, path, offsets)
            self._saved[path] = offsets

    def drop(self, path: Path, key: TopicPartition, content: Callable[[], Offsets]) -> None:
        """Write a file if it may have an offset of that log. Raises OSError."""
        with self._locks.setdefault(path, Lock()):
            if path not in self._saved and path not in self._found:
                self._found[path] = self._read(path)
            known = self._saved if path in self._saved else self._found
            offsets = known[path]
        if offsets is None or key in offsets:
            self.write(path, content)

    def _read(self, path: Path) -> Offsets | None:
        try:
            return read_offsets(self._files, path)
        except CheckpointError:
            return None
