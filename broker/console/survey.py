"""Counts over all logs and files of the broker, for the console's overview.

An open page asks every two seconds. With 10,000 logs the count takes some 10 ms of CPU time, so a
result is kept for KEPT_MS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from odradek.broker.broker import Broker
from odradek.broker.turns.slices import Slices
from odradek.storage.data_directory import DataDirectory
from odradek.storage.files import Files

KEPT_MS = 10_000
LOGS_PER_STEP = 200  # after so many, other requests may be served
_STATUS = Path("/proc/self/status")


class Surveyed(NamedTuple):
    """`log_bytes`: the bytes of all logs in each log directory, by its path.

    `memory_bytes` and `open_files` are those of the process; None where the system does not tell.
    """

    log_bytes: Mapping[str, int]
    memory_bytes: int | None
    open_files: int | None


class Survey:
    """Keeps the last counts, and counts again when they are old."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._counted_ms = 0
        self._last: Surveyed | None = None

    async def get(self, slices: Slices) -> Surveyed:
        """Return counts that are at most KEPT_MS old."""
        timer_ms = self._broker.clock.timer_ms()
        if self._last is None or timer_ms - self._counted_ms >= KEPT_MS:
            memory_bytes, open_files = await self._broker.disk.run(
                _memory_and_files, self._broker.log_manager.files
            )
            self._last = Surveyed(self._log_bytes(slices), memory_bytes, open_files)
            self._counted_ms = timer_ms
        return self._last

    def _log_bytes(self, slices: Slices) -> Mapping[str, int]:
        manager = self._broker.log_manager
        sizes: Counter[DataDirectory] = Counter()
        keys = manager.open_keys()
        for start in slices.of(iter(range(0, len(keys), LOGS_PER_STEP))):
            for key in keys[start : start + LOGS_PER_STEP]:
                log, directory = manager.find(*key), manager.location(key)
                if log is not None and directory is not None:  # it was not deleted meanwhile
                    sizes[directory] += log.size_bytes
        return {str(directory.path): size for directory, size in sizes.items()}


def _memory_and_files(files: Files) -> tuple[int | None, int | None]:
    """The memory in bytes and the number of open files of this process.

    Not for the thread of the event loop: to count thousands of files takes milliseconds.
    """
    return _memory_bytes(), _open_files(files)


def _memory_bytes() -> int | None:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return None


def _open_files(files: Files) -> int | None:
    try:
        return files.open_descriptors()
    except OSError:
        return None
