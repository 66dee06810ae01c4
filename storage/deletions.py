"""Files and directories that are gone for the log and wait for their last reader.

Kafka renames what it deletes (`.deleted`, `-delete`) and removes it `file.delete.delay.ms` later.
A rename is quick and is done at once; removing gigabytes is not, so the due paths are taken here on
the broker's thread and may be removed on another.
"""

import heapq
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from .files import Files

_logger = logging.getLogger(__name__)

RETRY_AFTER_MS = 60_000


class Deletions:
    """What will be removed, and when."""

    def __init__(self) -> None:
        self._due: list[tuple[int, Path]] = []
        self._failed: set[Path] = set()  # at least once, which was logged

    def __len__(self) -> int:
        return len(self._due)

    def add(self, paths: Iterable[Path], due_ms: int) -> None:
        """Remove these files or directories at `due_ms` or later."""
        for path in paths:
            heapq.heappush(self._due, (due_ms, path))

    def take_due(self, now_ms: int) -> list[Path]:
        """What is to be removed now: the caller does it, see `remove_paths`, and calls `note`."""
        paths = []
        while self._due and self._due[0][0] <= now_ms:
            paths.append(heapq.heappop(self._due)[1])
        return paths

    def note(self, taken: Iterable[Path], failed: Mapping[Path, OSError], now_ms: int) -> None:
        """Of what was taken, these could not be removed: they are tried again later."""
        self._failed.difference_update(path for path in taken if path not in failed)
        for path, error in failed.items():
            if path not in self._failed:
                _logger.error("%s could not be removed, and is tried again: %s", path, error)
        self._failed.update(failed)
        self.add(failed, now_ms + RETRY_AFTER_MS)


def remove_paths(files: Files, paths: Iterable[Path]) -> dict[Path, OSError]:
    """Remove files and whole directories; what is gone already is fine. Safe on any thread.

    Returns what could not be removed, and why.
    """
    failed = {}
    for path in paths:
        try:
            if files.is_directory(path):
                files.remove_tree(path)
            else:
                files.remove(path)
        except OSError as error:
            failed[path] = error
    return failed
