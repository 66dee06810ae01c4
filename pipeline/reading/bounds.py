"""Where a partition begins and ends, and at which offset a time does.

    log start       the first segment's offset, or what DeleteRecords has noted
    log end         behind the last whole batch
    last stable     before the oldest transaction that is not decided: isolation.py

On one node every record is committed once it is in the log, so the log's end is the high watermark.
"""

from typing import NamedTuple

from odradek.protocol.any_batch import read_any_records
from odradek.protocol.batch_header import BatchHeader
from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.files import Files
from odradek.storage.time_index import TimeIndex

from .partitions import LogDirectories, TopicPartition
from .segments import (
    OpenSegment,
    headers_from,
    indexed_places,
    is_true,
    list_segments,
    open_segment,
)


class OffsetBounds(NamedTuple):
    """The offsets that are there: from `start` to before `end`."""

    start: int
    end: int


def offset_bounds(directories: LogDirectories, partition: TopicPartition) -> OffsetBounds:
    """The bounds of a partition now. Raises FileNotFoundError where there is none."""
    while True:
        try:
            return _bounds(directories, partition)
        except FileNotFoundError:
            # The segment was replaced or deleted since it was listed; or all of it is gone.
            if directories.find(partition) is None:
                raise


def _bounds(directories: LogDirectories, partition: TopicPartition) -> OffsetBounds:
    files, directory = directories.files, directories.required(partition)
    segments = list_segments(files, directory)
    noted = directories.checkpointed_start(partition)
    if not segments:
        return OffsetBounds(noted, noted)
    last = open_segment(files, segments[-1])
    end = last.base_offset
    for _, header in headers_from(files, last, _last_indexed(files, last)):
        end = header.next_offset
    start = max(segments[0].base_offset, noted)
    return OffsetBounds(min(start, end), end)


def _last_indexed(files: Files, segment: OpenSegment) -> int:
    """The last position that the offset index knows, and rightly; else the first."""
    places = indexed_places(files, segment)
    if not places.count or not is_true(files, segment, places.place(-1)):
        return 0
    return places.place(-1).position


def offset_at(
    directories: LogDirectories, partition: TopicPartition, timestamp_ms: int, bounds: OffsetBounds
) -> int | None:
    """The first record in the bounds that is not older; None where all are.

    Raises CorruptRecordError, FileNotFoundError.
    """
    files, directory = directories.files, directories.required(partition)
    for segment in list_segments(files, directory):
        opened = open_segment(files, segment)
        if _newest_ms(files, opened, timestamp_ms) < timestamp_ms:
            continue
        for position, header in headers_from(files, opened):
            if header.base_offset >= bounds.end:
                return None
            if header.last_offset >= bounds.start and header.max_timestamp >= timestamp_ms:
                found = _first_at(files, opened, position, header, timestamp_ms, bounds)
                if found is not None:
                    return found
    return None


def _newest_ms(files: Files, segment: OpenSegment, unknown_ms: int) -> int:
    """The newest timestamp of a closed segment, by its time index; else `unknown_ms`."""
    path = segment.file.path.parent / segment_file(segment.base_offset, FileKind.TIME_INDEX)
    try:
        last = TimeIndex(files, path, segment.base_offset, max_bytes=0).last_entry
    except FileNotFoundError:
        return unknown_ms
    # The index of the active segment ends in zeros, and says nothing yet.
    says = last.timestamp_ms > 0 and last.offset > segment.base_offset
    return last.timestamp_ms if says else unknown_ms


def _first_at(
    files: Files,
    segment: OpenSegment,
    position: int,
    header: BatchHeader,
    timestamp_ms: int,
    bounds: OffsetBounds,
) -> int | None:
    if header.is_control:
        return None
    data = files.pread_exact(segment.file, header.size_bytes, position)
    for record in read_any_records(data, header):
        if record.timestamp_ms >= timestamp_ms and bounds.start <= record.offset < bounds.end:
            return record.offset
    return None
