"""Swaps of segments that a crash has interrupted: undone, or completed. See SegmentSwap.

A `.cleaned` file is of a swap that never began: it goes. So does a `.swap` file at or behind the
first of these, for not all of the new segments got as far. Any other `.swap` file is of a swap that
had begun: the old segments in its range go, and then it gets its name. Other leftovers, which are
`.deleted` files, go as well.
"""

import logging
from collections.abc import Sequence

from odradek.storage.filenames import (
    FileKind,
    FileState,
    SegmentFileName,
    parse_segment_file,
    segment_file,
)

from .found_segments import open_segment
from .log_source import LogSource

_logger = logging.getLogger(__name__)


def finish_interrupted_swaps(source: LogSource) -> set[SegmentFileName]:
    """Returns the segments' files that are there afterwards. Raises OSError."""
    names = _segment_files(source)
    cleaned = [name.offset for name in names if name.state is FileState.CLEANED]
    first_cleaned = min(cleaned, default=None)
    swaps, orphans, others = [], [], []
    for name in names:
        if name.state is not FileState.SWAP:
            others.append(name)
        elif first_cleaned is not None and name.offset >= first_cleaned:
            orphans.append(name)  # not all of the new segments got as far as this one
        else:
            swaps.append(name)
    # Orphans first: without a .cleaned file they would look like what is to be swapped in.
    for name in (*orphans, *(name for name in others if name.state is not FileState.LIVE)):
        source.files.remove(source.directory / segment_file(*name))
    live = [name for name in others if name.state is FileState.LIVE]
    if not swaps:
        return set(live)
    _swap_in(source, live, swaps)
    return set(_segment_files(source))


def _swap_in(
    source: LogSource, live: Sequence[SegmentFileName], swaps: Sequence[SegmentFileName]
) -> None:
    new = [open_segment(source, n.offset, n.state) for n in swaps if n.kind is FileKind.LOG]
    if new:
        start = min(segment.base_offset for segment in new)
        end = max(segment.tail().next_offset for segment in new)
        bases = {segment.base_offset for segment in new}
        for name in live:
            is_same = name.offset in bases and name.kind is not FileKind.PRODUCER_SNAPSHOT
            if is_same or start <= name.offset < end:
                source.files.remove(source.directory / segment_file(*name))
    # Listed anew: an index that was missing has been made meanwhile.
    for name in _segment_files(source):
        if name.state is FileState.SWAP:
            path = source.directory / segment_file(name.offset, name.kind)
            _logger.info("%s: finishing an interrupted swap", path)
            source.files.rename(source.directory / segment_file(*name), path)


def _segment_files(source: LogSource) -> list[SegmentFileName]:
    parsed = map(parse_segment_file, source.files.list_directory(source.directory))
    return [name for name in parsed if name is not None]
