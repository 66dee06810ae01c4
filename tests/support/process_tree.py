"""A process and its children, as /proc shows them."""

import contextlib
import os
import re
import threading
import time
from pathlib import Path

PAUSE_SECONDS = 0.02
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> list[int]:
    """All processes below that one."""
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children_of(int(child))]
    return found


def own_cpu_seconds(pid: int) -> float:
    """User and system time of a process without its children. Raises OSError after its end."""
    return time.clock_gettime((~pid << 3) | 2)  # the process clock of Linux


def cpu_seconds(pid: int) -> float:
    """User and system time that a process and its children have used.

    A child that has ended counts once its parent has waited for it, in whole ticks.
    """
    found = 0.0
    for each in (pid, *children_of(pid)):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()
            ended = (int(fields[13]) + int(fields[14])) / CLOCK_TICKS
            found += ended + own_cpu_seconds(each)
    return found


def anonymous_bytes(pid: int) -> int:
    """Resident memory of a process and its children that is no page cache; 0 after their end."""
    found = 0
    for each in (pid, *children_of(pid)):
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{each}/status").read_text()
            match = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
            found += int(match[1]) * 1024 if match else 0
    return found


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
        self.bytes = max(self.bytes, anonymous_bytes(self._pid))
