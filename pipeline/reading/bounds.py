"""Finds where a partition begins and ends, and the offset of a timestamp.

log start       the first segment's offset, or the checkpointed log start (DeleteRecords)
log end         the offset after the last whole batch
high watermark  the offset after the last committed record: high_watermarks.py
last stable     the first offset of the oldest open transaction: isolation.py
"""

from pathlib import Path
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
    list_segments,
    matches_log,
    open_segment,
    read_offset_index,
)


class OffsetBounds(NamedTuple):
    """The readable offsets [start, end), from the log start to the high watermark."""

    start: int
    end: int


def offset_bounds(directories: LogDirectories, partition: TopicPartition) -> OffsetBounds:
    """Return the bounds of a partition now. Raises FileNotFoundError if it does not exist."""
    return directories.retry(partition, lambda path: _bounds(directories, partition, path))


def _bounds(directories: LogDirectories, partition: TopicPartition, path: Path) -> OffsetBounds:
    files = directories.files
    segments = list_segments(files, path)
    checkpointed = directories.checkpointed_start(partition)
    if not segments:
        return OffsetBounds(checkpointed, checkpointed)
    last = open_segment(files, segments[-1])
    log_end = last.base_offset
    for _, header in headers_from(files, last, _last_indexed(files, last)):
        log_end = header.next_offset
    start = min(max(segments[0].base_offset, checkpointed), log_end)
    return OffsetBounds(start, max(start, directories.high_watermark(partition, path, log_end)))


def _last_indexed(files: Files, segment: OpenSegment) -> int:
    """Return the last position in the offset index if its entry is right, else 0."""
    entries = read_offset_index(files, segment)
    if not entries.count or not matches_log(files, segment, entries.at(-1)):
        return 0
    return entries.at(-1).position


def offset_at(
    directories: LogDirectories, partition: TopicPartition, timestamp_ms: int, bounds: OffsetBounds
) -> int | None:
    """Return the offset of the first record in the bounds that is not older, or None.

    Raises CorruptRecordError, FileNotFoundError.
    """
    files, directory = directories.files, directories.required(partition)
    for segment in list_segments(files, directory):
        opened = open_segment(files, segment)
        if _max_timestamp_ms(files, opened, timestamp_ms) < timestamp_ms:
            continue
        for position, header in headers_from(files, opened):
            if header.base_offset >= bounds.end:
                return None
            if header.last_offset >= bounds.start and header.max_timestamp >= timestamp_ms:
                found = _first_at(files, opened, position, header, timestamp_ms, bounds)
                if found is not None:
                    return found
    return None


def _max_timestamp_ms(files: Files, segment: OpenSegment, unknown_ms: int) -> int:
    """Return the largest timestamp in a closed segment's time index; else `unknown_ms`."""
    path = segment.file.path.parent / segment_file(segment.base_offset, FileKind.TIME_INDEX)
    try:
        last = TimeIndex(files, path, segment.base_offset, max_bytes=0).last_entry
    except FileNotFoundError:
        return unknown_ms
    # The index of the active segment may be empty, or end in zeros.
    is_known = last.timestamp_ms > 0 and last.offset > segment.base_offset
    return last.timestamp_ms if is_known else unknown_ms


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
