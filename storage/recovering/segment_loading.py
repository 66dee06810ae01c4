"""Opens the segments in a log's directory.

An index file without a .log file is removed. A .log file without its indexes gets new ones. A
segment whose offsets are too far apart for an index (written by Kafka before 2.0) is split.
"""

import logging
from collections.abc import Sequence

from odradek.storage.cleaning.input import CleanerInput
from odradek.storage.cleaning.segment_split import overflows, split_segment
from odradek.storage.cleaning.segment_swap import SegmentSwap
from odradek.storage.cleaning.task import SegmentToClean
from odradek.storage.filenames import FileKind, FileState, SegmentFileName, segment_file
from odradek.storage.index_file import MAX_RELATIVE_OFFSET
from odradek.storage.segment import Segment
from odradek.storage.segment_list import SegmentList
from odradek.storage.segment_settings import SegmentSettings

from .log_source import LogSource

_logger = logging.getLogger(__name__)


def load_segments(source: LogSource, names: set[SegmentFileName]) -> SegmentList:
    """Open the segments of these files. Raises OSError."""
    logs = {name.offset for name in names if name.kind is FileKind.LOG}
    segments = []
    for name in sorted(names):
        if name.kind is FileKind.LOG:
            segments.append(open_segment(source, name.offset))
        elif name.kind is not FileKind.PRODUCER_SNAPSHOT and name.offset not in logs:
            path = source.directory / segment_file(*name)
            _logger.warning("removing %s, which belongs to no log", path)
            source.files.remove(path)
    for segment in segments:
        needed = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)
        if any(
            SegmentFileName(segment.base_offset, k, FileState.LIVE) not in names for k in needed
        ):
            _logger.warning("rebuilding the indexes of %s: one is missing", segment)
            segment.rebuild_indexes()
    return SegmentList(segments)


def split_overflowing(source: LogSource, segments: SegmentList) -> None:
    """Split segments whose offsets are too far apart for an index. Raises OSError.

    The cleaner of Kafka before 2.0 has made them. It leaves the last segment alone.
    """
    closed = list(segments)[:-1]
    for segment, following in zip(closed, list(segments)[1:], strict=True):
        # The next base offset rules out nearly all segments without reading them.
        if following.base_offset - segment.base_offset > MAX_RELATIVE_OFFSET and overflows(segment):
            source.report(f"{segment}: splitting it, its offsets are too far apart")
            settings = SegmentSettings.of(source.config, source.directory, segment.base_offset)
            group = split_segment(
                CleanerInput.plain(source.files),
                source.directory,
                SegmentToClean(segment.base_offset, segment.size_bytes),
                settings,
            )
            new = [open_segment(source, n.base_offset, FileState.CLEANED) for n in group.segments]
            swap = SegmentSwap(source.files, new)
            swap.stage()
            swap.sync()
            swap.complete([segment])
            _delete(source, segments, segment)
            for part in new:
                segments.add(part)


def open_segment(source: LogSource, base_offset: int, state: FileState = FileState.LIVE) -> Segment:
    """Open a segment whose files exist. Raises OSError."""
    path = source.directory / segment_file(base_offset, FileKind.LOG, state)
    return Segment(
        source.files,
        source.directory,
        base_offset,
        SegmentSettings.of(source.config, source.directory, base_offset),
        size_bytes=source.files.size(path),
        created_ms=source.now_ms,
        state=state,
    )


def drop_segments(source: LogSource, segments: SegmentList, dropped: Sequence[Segment]) -> None:
    """Delete segments after the log's end. Raises OSError."""
    for segment in dropped:
        source.report(f"{segment}: dropped, it comes after the end of the log")
        segment.rename(FileState.DELETED)
        _delete(source, segments, segment)
    if dropped:
        # Synced now: after a power cut they must not come back after newly written segments.
        source.files.fsync_directory(source.directory)


def _delete(source: LogSource, segments: SegmentList, segment: Segment) -> None:
    """Remove a segment whose files were renamed, and schedule their deletion."""
    segments.remove(segment)
    source.deletions.add(segment.paths(), source.config.file_delete_delay_ms)
