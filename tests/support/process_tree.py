"""A process and its children, as /proc shows them."""

import contextlib
import re
import threading
from pathlib import Path

PAUSE_SECONDS = 0.02


def children_of(pid: int) -> list[int]:
    """All processes below that one."""
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children_of(int(child))]
    return found


def anonymous_bytes(pid: int) -> int:
    """What is resident of its own memory, the page cache not counted; 0 of one that has ended."""
    with contextlib.suppress(OSError):
        match = re.search(
            r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE
        )
        if match:
            return int(match[1]) * 1024
    return 0


class PeakMemory(threading.Thread):
    """Looks again and again how much memory a process and its children have; `bytes`: the most."""

    def __init__(self, pid: int) -> None:
        super().__init__(name="peak-memory", daemon=True)
        self.bytes = 0
        self._pid = pid
        self._end = threading.Event()

    def run(self) -> None:
        while not self._end.wait(PAUSE_SECONDS):
            self._look()

    def end(self) -> None:
        """Look once more, and stop."""
        self._end.set()
        self.join()
        self._look()

    def _look(self) -> None:
        pids = [self._pid, *children_of(self._pid)]
        self.bytes = max(self.bytes, sum(map(anonymous_bytes, pids)))
