"""One step of copying a log to another directory: planned on the broker's thread, run on another.

The plan holds the open source files, so retention may delete them meanwhile. Files are synced
before their `.cleaned` suffix is removed: a file without the suffix is complete. Kafka copies by
fetching from itself (ReplicaAlterLogDirsThread); here the kernel copies ranges of files, and the
copy is identical to the byte.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from odradek.storage.checkpoints import write_epochs
from odradek.storage.filenames import LEADER_EPOCH_CHECKPOINT
from odradek.storage.files import Files, OpenFile
from odradek.storage.segment import Segment


class CopiedRange(NamedTuple):
    """`size` bytes of a file to copy to the same position of another. Position 0 starts a new file.

    `length`: the length of the target afterwards, if it is larger. The file of an active index is
    longer than its entries.
    """

    source: OpenFile
    target: Path
    position: int
    size: int
    length: int = 0


class CopyPlan(Struct, frozen=True, kw_only=True):
    """One step of copying `segment`: ranges, then removals and renames, then the leader epochs.

    Afterwards `copied_bytes` of its .log are copied; if `is_whole`, all its files.
    """

    files: Files
    directory: Path
    segment: Segment
    copied_bytes: int
    ranges: Sequence[CopiedRange]
    removals: Sequence[Path] = ()
    renames: Sequence[tuple[Path, Path]] = ()
    epochs: Sequence[tuple[int, int]] = ()
    is_whole: bool = False
    is_renamed: bool = False  # whether the .log loses its .cleaned suffix

    @property
    def size_bytes(self) -> int:
        """The number of bytes that the plan copies."""
        return sum(each.size for each in self.ranges)

    def run(self, *, sync: bool = True) -> None:
        """Carry out the plan. Raises OSError; then it may be run again."""
        for each in self.ranges:
            target = self.files.open(each.target, create=True)
            if each.position == 0:
                self.files.truncate(target, 0)
            self.files.copy_range(each.source, target, each.size, each.position)
            if each.length > each.position + each.size:
                self.files.preallocate(target, each.length)
            if sync:
                self.files.fsync(target)
        for path in self.removals:
            self.files.remove(path)
        for old, new in self.renames:
            self.files.rename(old, new)
        if self.epochs:
            path = self.directory / LEADER_EPOCH_CHECKPOINT
            write_epochs(self.files, path, self.epochs, sync=sync)
        if sync and (self.renames or self.removals):
            self.files.fsync_directory(self.directory)
