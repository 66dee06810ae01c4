"""Files and directories that are gone for the log and wait for their last reader.

Kafka renames what it deletes (`.deleted`, `-delete`) and removes it `file.delete.delay.ms` later.
A rename is quick and is done at once; removing gigabytes is not, so the due paths are taken here on
the broker's thread and may be removed on another.
"""

import heapq
from collections.abc import Iterable
from pathlib import Path

from .files import Files


class Deletions:
    """What will be removed, and when."""

    def __init__(self) -> None:
        self._due: list[tuple[int, Path]] = []

    def __len__(self) -> int:
        return len(self._due)

    def add(self, paths: Iterable[Path], due_ms: int) -> None:
        """Remove these files or directories at `due_ms` or later."""
        for path in paths:
            heapq.heappush(self._due, (due_ms, path))

    def take_due(self, now_ms: int) -> list[Path]:
        """What is to be removed now: the caller does it, see `remove_paths`."""
        paths = []
        while self._due and self._due[0][0] <= now_ms:
            paths.append(heapq.heappop(self._due)[1])
        return paths


def remove_paths(files: Files, paths: Iterable[Path]) -> None:
    """Remove files and whole directories; what is gone already is fine. Safe on any thread.

    Raises the first OSError, after it has tried all.
    """
    errors = []
    for path in paths:
        try:
            if files.is_directory(path):
                files.remove_tree(path)
            else:
                files.remove(path)
        except OSError as error:
            errors.append(error)
    if errors:
        raise errors[0]
