"""Files and directories that were renamed for deletion and are removed after a delay.

As in Kafka, a deleted file or directory is renamed at once (`.deleted`, `-delete`) and removed
`file.delete.delay.ms` later, so that readers can finish. A clock that never jumps measures the
delay. Removing gigabytes takes long, so another thread may do it: the event loop takes the paths
that are due (`take_due`), a thread removes them (`remove_paths`), and the loop notes the result.
"""

import heapq
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from .files import Files

_logger = logging.getLogger(__name__)

RETRY_AFTER_MS = 60_000
# Few enough that a stop of the broker, which waits until these are removed, is not held up long.
TAKEN_AT_ONCE = 100


class Deletions:
    """The paths to remove, by the time of `timer_ms` at which they are due."""

    def __init__(self, timer_ms: Callable[[], int]) -> None:
        self._timer_ms = timer_ms
        # A heap: when they are due, a sequence number, and paths that were added together. The
        # number breaks ties, so that paths are never compared.
        self._due: list[tuple[int, int, deque[Path]]] = []
        self._added = 0
        self._failed: set[Path] = set()  # a removal failed, and that was logged

    def __len__(self) -> int:
        return sum(len(paths) for *_, paths in self._due)

    def add(self, paths: Iterable[Path], delay_ms: int) -> None:
        """Remove these files or directories after `delay_ms`."""
        added = deque(paths)
        if added:
            self._added += 1
            heapq.heappush(self._due, (self._timer_ms() + delay_ms, self._added, added))

    def take_due(self) -> list[Path]:
        """Take up to TAKEN_AT_ONCE paths that are due. Call `remove_paths`, then `note`."""
        now_ms = self._timer_ms()
        paths: list[Path] = []
        while self._due and self._due[0][0] <= now_ms and len(paths) < TAKEN_AT_ONCE:
            *_, together = self._due[0]
            paths.append(together.popleft())
            if not together:
                heapq.heappop(self._due)
        return paths

    def note(self, taken: Iterable[Path], failed: Mapping[Path, OSError]) -> None:
        """Record the result for paths that were taken; `failed` ones are tried again later."""
        if self._failed:
            self._failed.difference_update(path for path in taken if path not in failed)
        for path, error in failed.items():
            if path not in self._failed:
                _logger.error("%s could not be removed and will be tried again: %s", path, error)
        self._failed.update(failed)
        self.add(failed, RETRY_AFTER_MS)


def remove_paths(files: Files, paths: Iterable[Path]) -> dict[Path, OSError]:
    """Remove files and whole directories, on any thread. Missing ones are ignored.

    Returns the paths that could not be removed, with the error.
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
