"""The start offset of each leader epoch of a log: leader-epoch-checkpoint, in memory and on disk.

A broker that becomes leader of a partition gets a new epoch and writes it into the batches that it
appends. A reader that is at offset o of epoch e can ask where epoch e ends, which is where the next
one begins, and so learns whether the log was truncated before its position (KIP-101, KIP-320).

Epochs and start offsets both ascend. `flush` writes the file. The log calls it when it gets its
first epoch and before each sync, so the file has the epochs of all synced batches; recovery reads
the others again and finds their epochs there. So a start with thousands of logs writes no such
file.
Truncated entries stay in the file until the next `flush` and may come back after a crash; then they
are truncated again.
Kafka writes each new epoch at once.

Kafka: LeaderEpochFileCache.
"""

import logging
from bisect import bisect_left, bisect_right
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from .checkpoints import read_epochs, write_epochs
from .files import Files

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1

logger = logging.getLogger(__name__)


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


_EPOCH = attrgetter("epoch")
_START = attrgetter("start_offset")


class LeaderEpochs:
    """The leader epochs of one log. `path` may be assigned when the directory is renamed."""

    def __init__(self, files: Files, path: Path) -> None:
        """Read the file; a missing one is empty. Raises CheckpointError, OSError."""
        self.path = path
        self._files = files
        self._entries: list[EpochEntry] = []
        for epoch, start_offset in read_epochs(files, path):
            self._insert(EpochEntry(epoch, start_offset))
        self._stored = tuple(self._entries)  # what the file has

    @property
    def entries(self) -> list[EpochEntry]:
        return list(self._entries)

    @property
    def latest(self) -> EpochEntry | None:
        return self._entries[-1] if self._entries else None

    @property
    def is_stored(self) -> bool:
        """Whether the file has any epoch."""
        return bool(self._stored)

    @property
    def earliest(self) -> EpochEntry | None:
        return self._entries[0] if self._entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that batches from `start_offset` on have this epoch.

        Nothing changes if `epoch` is the latest one already. Entries that contradict the new one
        are dropped. Raises ValueError.
        """
        latest = self._entries[-1] if self._entries else None
        if not latest or latest.epoch != epoch or latest.start_offset > start_offset:
            self._insert(EpochEntry(epoch, start_offset))

    def _insert(self, new: EpochEntry) -> None:
        if new.epoch < 0 or new.start_offset < 0:
            raise ValueError(f"{self.path}: {new} is no leader epoch")
        keep = len(self._entries)
        while keep and not _ascend(self._entries[keep - 1], new):
            keep -= 1
        dropped = self._entries[keep:]
        # An epoch in which nothing was written starts where the next one does.
        if len(dropped) > 1 or (dropped and dropped[0].start_offset != new.start_offset):
            logger.warning("%s: %s contradicts %s, which are dropped", self.path, new, dropped)
        self._entries[keep:] = [new]

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(the largest known epoch up to `epoch`, its end offset).

        (-1, -1) if `epoch` is newer than all known ones. For an epoch older than all known ones:
        (`epoch`, the start offset of the oldest), because its records were deleted.
        """
        latest = self.latest
        if epoch == UNDEFINED_EPOCH or latest is None or epoch > latest.epoch:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if epoch == latest.epoch:
            return epoch, log_end_offset
        following = bisect_right(self._entries, epoch, key=_EPOCH)
        known = self._entries[following - 1].epoch if following else epoch
        return known, self._entries[following].start_offset

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the epochs that start at `end_offset` or later. `flush` writes the file."""
        keep = bisect_left(self._entries, end_offset, key=_START)
        if end_offset >= 0:
            del self._entries[keep:]

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop epochs before `start_offset`; the one that holds it starts there.

        `flush` writes the file.
        """
        dropped = bisect_right(self._entries, start_offset, key=_START)
        if dropped:
            first = EpochEntry(self._entries[dropped - 1].epoch, start_offset)
            self._entries[:dropped] = [first]

    def clear(self) -> None:
        """Drop all epochs. `flush` writes the file."""
        self._entries.clear()

    def flush(self, *, sync: bool = True) -> bool:
        """Write the file if it has other entries; return whether it had."""
        entries = tuple(self._entries)
        if entries == self._stored:
            return False
        write_epochs(self._files, self.path, entries, sync=sync)
        self._stored = entries
        return True


def _ascend(earlier: EpochEntry, later: EpochEntry) -> bool:
    return earlier.epoch < later.epoch and earlier.start_offset < later.start_offset
