"""Cleaned (or split) segments take the place of the old ones, so that a crash at any step is safe.

    stage       1  new files   .cleaned -> .swap     the segments from the last to the first
    sync        2  the directory is synced
    complete    3  old files            -> .deleted  from the first to the last
                4  new files   .swap    ->           from the first to the last

Until the last file of step 1 has its new name, a restart undoes it all: a `.swap` file at or behind
the first `.cleaned` one goes, and so do those. From then on a restart completes it: what is left of
the old segments in the range of the new ones goes, and `.swap` files get their names. What is left
of the old ones is always the end of the group, so no record comes back without those that replaced
it. See recovering/interrupted_swaps.py.

For this rule no `.cleaned` file of an abandoned round may lie around, and the groups of a round
must be swapped in the order of their offsets. Step 2 keeps a power cut from forgetting step 1 and
remembering step 3 (Kafka trusts the file system's journal to keep the order); what happens later
needs no sync.

Kafka: LocalLog.replaceSegments.
"""

from collections.abc import Sequence
from pathlib import Path

from odradek.config.topic_config import TopicConfig
from odradek.storage.filenames import FileState, SegmentFileName, parse_segment_file, segment_file
from odradek.storage.files import Files
from odradek.storage.segment import FILE_KINDS, Segment
from odradek.storage.segment_shape import shape_of

from .task import CleanedSegment


def remove_leftovers(files: Files, directory: Path, up_to: int, keep: Sequence[int] = ()) -> None:
    """Remove `.swap` and `.cleaned` files that abandoned rounds left in a log that runs.

    Of segments up to `up_to`; the `.cleaned` ones of segments that begin at `keep` stay.
    """
    left: list[SegmentFileName] = []
    for name in files.list_directory(directory):
        parsed = parse_segment_file(name)
        if parsed is None or parsed.offset > up_to:
            continue
        if parsed.state is FileState.SWAP:
            left.insert(0, parsed)  # before the .cleaned files, without which they would count
        elif parsed.state is FileState.CLEANED and parsed.offset not in keep:
            left.append(parsed)
    for parsed in left:
        files.remove(directory / segment_file(*parsed))


class SegmentSwap:
    """One swap; see the module. `new` in the order of their offsets, in state CLEANED."""

    def __init__(self, files: Files, new: Sequence[Segment]) -> None:
        self.new = new
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
        """Remove the new files; before `complete` only."""
        for state in (FileState.SWAP, FileState.CLEANED):
            for segment in self.new:
                segment.release_files()
                for kind in FILE_KINDS:
                    self._files.remove(segment.path(kind, state))

    def sync(self) -> None:
        """Step 2, on any thread. Raises OSError."""
        self._files.fsync_directory(self.new[0].directory)

    def complete(self, old: Sequence[Segment]) -> None:
        """Steps 3 and 4. Raises OSError: then it may be called again, or a restart completes it.

        The old segments can be read until it has returned, each in the state that it is in.
        """
        for segments, state in ((old, FileState.DELETED), (self.new, FileState.LIVE)):
            for segment in segments:
                if segment.state is not state:
                    segment.rename(state)


def stage_cleaned(
    files: Files,
    directory: Path,
    config: TopicConfig,
    cleaned: Sequence[CleanedSegment],
    now_ms: int,
) -> SegmentSwap:
    """Step 1 for `.cleaned` files of a round. Raises OSError: then nothing has changed."""
    new = [
        Segment(
            files,
            directory,
            base_offset,
            shape_of(config, directory, base_offset),
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
