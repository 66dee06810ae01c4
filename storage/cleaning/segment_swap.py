"""Replaces old segments with cleaned (or split) ones, so that a crash at any step is safe.

    stage       1  new files   .cleaned -> .swap     the segments from the last to the first
    sync        2  the directory is synced
    complete    3  old files            -> .deleted  from the first to the last
                4  new files   .swap    ->           from the first to the last

Until the last file of step 1 is renamed, a restart undoes the swap: it removes the `.cleaned` files
and every `.swap` file at or after the offset of the first of them. After that, a restart completes
the swap: it removes the remaining old segments in the range of the new ones, and renames the
`.swap` files. The remaining old segments are always the end of the group, so no record comes back
without those that replaced it. See recovering/interrupted_swaps.py.

This rule needs two conditions: no `.cleaned` files of an abandoned round exist, and the groups of a
round are swapped in the order of their offsets. Step 2 prevents that a power cut undoes step 1 but
not step 3 (Kafka relies on the order of the file system's journal). The later steps need no sync.

Kafka: LocalLog.replaceSegments.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from odradek.config.topic_config import TopicConfig
from odradek.storage.filenames import FileState, SegmentFileName, parse_segment_file, segment_file
from odradek.storage.files import Files
from odradek.storage.segment import FILE_KINDS, Segment
from odradek.storage.segment_settings import SegmentSettings

from .task import CleanedSegment

# Iterates over segments, and may give way before each.
Sliced = Callable[[Iterable[Segment]], Iterable[Segment]]


def remove_leftovers(
    files: Files, directory: Path, up_to: float = math.inf, keep: Sequence[int] = ()
) -> None:
    """Remove `.swap` and `.cleaned` files that abandoned rounds left in an open log.

    Of segments up to base offset `up_to`; keeps `.cleaned` files with the base offsets in `keep`.
    """
    left: list[SegmentFileName] = []
    for name in files.list_directory(directory):
        if not name.endswith((FileState.SWAP, FileState.CLEANED)):
            continue  # of thousands
        parsed = parse_segment_file(name)
        if parsed is None or parsed.offset > up_to:
            continue
        if parsed.state is FileState.SWAP:
            # Removed first: without .cleaned files a restart would swap them in.
            left.insert(0, parsed)
        elif parsed.state is FileState.CLEANED and parsed.offset not in keep:
            left.append(parsed)
    for parsed in left:
        files.remove(directory / segment_file(*parsed))


class SegmentSwap:
    """One swap; see the module. `new`: in offset order, in state CLEANED.

    `old`: the segments that are being replaced, once `complete` has begun. `is_undone`: `undo` has
    begun. `is_over`: it was undone or completed.
    """

    def __init__(self, files: Files, new: Sequence[Segment]) -> None:
        self.new = new
        self.old: Sequence[Segment] = ()
        self.is_undone = False
        self.is_over = False
        self._files = files

    def stage(self) -> None:
        """Step 1. Raises OSError: then nothing has changed, and the new files are gone."""
        try:
            for segment in reversed(self.new):
                segment.rename(FileState.SWAP)
        except OSError:
            self.undo()
            raise

    def undo(self) -> None:
        """Remove the new files. Only allowed before `complete`.

        Raises OSError: then some are gone, and it may only be called again.
        """
        self.is_undone = True
        first = self.new[0]
        if first.state is FileState.SWAP:
            first.rename(FileState.CLEANED)  # from now on a restart undoes the swap
        for state in (FileState.SWAP, FileState.CLEANED):
            for segment in self.new:
                segment.release_files()
                for kind in FILE_KINDS:
                    self._files.remove(segment.path(kind, state))
        self.is_over = True

    def sync(self) -> None:
        """Step 2, on any thread. Raises OSError."""
        self._files.fsync_directory(self.new[0].directory)

    def complete(self, old: Sequence[Segment], sliced: Sliced = iter) -> list[Path]:
        """Steps 3 and 4. Returns the paths that the old files have now.

        The old segments stay readable, also when `sliced` gives way. Another call may then complete
        the swap, and this one ends. Raises OSError: then it may be called again, or a restart
        completes it.
        """
        self.old = old
        paths: list[Path] = []
        for segment in sliced(old):
            if self.is_over:
                return paths
            if segment.state is not FileState.DELETED:
                segment.rename(FileState.DELETED)
            paths += segment.paths()
        for segment in sliced(self.new):
            if self.is_over:
                return paths
            if segment.state is not FileState.LIVE:
                segment.rename(FileState.LIVE)
        return paths


def stage_cleaned(
    files: Files,
    directory: Path,
    config: TopicConfig,
    cleaned: Sequence[CleanedSegment],
    now_ms: int,
) -> SegmentSwap:
    """Run step 1 for the `.cleaned` files of a round. Raises OSError: then nothing has changed."""
    new = [
        Segment(
            files,
            directory,
            base_offset,
            SegmentSettings.of(config, directory, base_offset),
            size_bytes=size_bytes,
            created_ms=now_ms,
            state=FileState.CLEANED,
        )
        for base_offset, size_bytes in cleaned
    ]
    bases = [segment.base_offset for segment in new]
    remove_leftovers(files, directory, bases[-1], keep=bases)
    swap = SegmentSwap(files, new)
    swap.stage()
    return swap
