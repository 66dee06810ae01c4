"""Undoes or completes swaps of segments that a crash interrupted. See SegmentSwap.

A `.cleaned` file belongs to a swap that did not begin: it is removed. So is a `.swap` file with the
offset of the first `.cleaned` file or a later one, because not all of its new segments were staged.
Any other `.swap` file belongs to a swap that had begun: the old segments in its range are removed,
then its suffix is. `.deleted` files are removed.
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

from .log_source import LogSource
from .segment_loading import open_segment

_logger = logging.getLogger(__name__)


def finish_interrupted_swaps(source: LogSource) -> set[SegmentFileName]:
    """Undo or complete the swaps. Returns the segment files that are left. Raises OSError."""
    names = _segment_files(source)
    cleaned = [name.offset for name in names if name.state is FileState.CLEANED]
    first_cleaned = min(cleaned, default=None)
    swaps, orphans, others = [], [], []
    for name in names:
        if name.state is not FileState.SWAP:
            others.append(name)
        elif first_cleaned is not None and name.offset >= first_cleaned:
            orphans.append(name)  # not all new segments of its swap were staged
        else:
            swaps.append(name)
    # Orphans first: once the .cleaned files are gone they would look like staged segments.
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
    # Listed again: opening a segment creates a missing index.
    for name in _segment_files(source):
        if name.state is FileState.SWAP:
            path = source.directory / segment_file(name.offset, name.kind)
            _logger.info("%s: finishing an interrupted swap", path)
            source.files.rename(source.directory / segment_file(*name), path)


def _segment_files(source: LogSource) -> list[SegmentFileName]:
    parsed = map(parse_segment_file, source.files.list_directory(source.directory))
    return [name for name in parsed if name is not None]
