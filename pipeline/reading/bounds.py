"""Finds where a partition begins and ends, and the offset of a timestamp.

log start       the first segment's offset, or the checkpointed log start (DeleteRecords)
log end         the offset after the last whole batch
high watermark  the offset after the last committed record: high_watermarks.py
last stable     the first offset of the oldest open transaction: isolation.py
"""

from collections.abc import Iterator
from typing import NamedTuple

from odradek.pipeline.decoding.batch_table import table_of
from odradek.pipeline.decoding.decoded_records import DecodedRecords
from odradek.pipeline.decoding.decoder import RecordDecoder
from odradek.pipeline.decoding.legacy_messages import read_messages
from odradek.protocol.batch_header import MAGIC_V2, BatchHeader
from odradek.storage.filenames import FileKind
from odradek.storage.log_reader import LogReader, OpenSegment
from odradek.storage.time_index import TimeIndex
from odradek.storage.topic_partition import TopicPartition

from .index_lookup import matches_log, read_offset_index
from .partitions import LogDirectories


class OffsetBounds(NamedTuple):
    """The readable offsets [start, end), from the log start to the high watermark."""

    start: int
    end: int


def offset_bounds(directories: LogDirectories, partition: TopicPartition) -> OffsetBounds:
    """Return the bounds of a partition now. Raises FileNotFoundError if it does not exist."""
    return directories.retry(partition, lambda reader: _bounds(directories, partition, reader))


def _bounds(
    directories: LogDirectories, partition: TopicPartition, reader: LogReader
) -> OffsetBounds:
    segments = reader.segments()
    checkpointed = directories.checkpointed_start(partition)
    if not segments:
        return OffsetBounds(checkpointed, checkpointed)
    end = _end_of(reader.open(segments[-1]))
    start = min(max(segments[0].base_offset, checkpointed), end)
    committed = directories.high_watermark(partition, reader.directory, end)
    return OffsetBounds(start, max(start, committed))


def log_end(directories: LogDirectories, partition: TopicPartition) -> int:
    """Return the offset after the last whole batch, committed or not. Raises FileNotFoundError."""

    def read(reader: LogReader) -> int:
        segments = reader.segments()
        return _end_of(reader.open(segments[-1])) if segments else 0

    return directories.retry(partition, read)


def _end_of(last: OpenSegment) -> int:
    end = last.base_offset
    for _, header in last.headers(_last_indexed(last)):
        end = header.next_offset
    return end


def _last_indexed(segment: OpenSegment) -> int:
    """Return the last position in the offset index if its entry is right, else 0."""
    entries = read_offset_index(segment)
    if not entries.count or not matches_log(segment, entries.at(-1)):
        return 0
    return entries.at(-1).position


def offset_at(
    directories: LogDirectories, partition: TopicPartition, timestamp_ms: int, bounds: OffsetBounds
) -> int | None:
    """Return the offset of the first record in the bounds that is not older, or None.

    Raises CorruptRecordError, FileNotFoundError.
    """
    return directories.retry(partition, lambda reader: _offset_at(reader, timestamp_ms, bounds))


def _offset_at(reader: LogReader, timestamp_ms: int, bounds: OffsetBounds) -> int | None:
    for segment in reader.segments():
        opened = reader.open(segment)
        if _max_timestamp_ms(opened, timestamp_ms) < timestamp_ms:
            continue
        for position, header in opened.headers():
            if header.base_offset >= bounds.end:
                return None
            if header.last_offset >= bounds.start and header.max_timestamp >= timestamp_ms:
                found = _first_at(opened, position, header, timestamp_ms, bounds)
                if found is not None:
                    return found
    return None


def _max_timestamp_ms(segment: OpenSegment, unknown_ms: int) -> int:
    """Return the largest timestamp in a closed segment's time index; otherwise `unknown_ms`."""
    try:
        file = segment.files.open(segment.beside(FileKind.TIME_INDEX), read_only=True)
    except FileNotFoundError:
        return unknown_ms
    entry = TimeIndex.entry
    number = file.append_position // entry.size - 1
    data = segment.files.pread(file, entry.size, number * entry.size) if number >= 0 else b""
    last_ms, relative_offset = entry.unpack(data) if len(data) == entry.size else (0, 0)
    # The index of the active segment may be empty, or end in zeros.
    return last_ms if last_ms > 0 and relative_offset > 0 else unknown_ms


def _first_at(
    segment: OpenSegment,
    position: int,
    header: BatchHeader,
    timestamp_ms: int,
    bounds: OffsetBounds,
) -> int | None:
    if header.is_control or not header.record_count:
        return None
    data = segment.pread(header.size_bytes, position)
    if len(data) < header.size_bytes:  # the log has been cut
        return None
    for records in _records(data, header):
        offset = records.offset
        is_found = (records.timestamp_ms >= timestamp_ms) & (offset >= bounds.start)
        found = offset[is_found & (offset < bounds.end)]
        if found.size:
            return int(found[0])
    return None


def _records(data: bytes, header: BatchHeader) -> Iterator[DecodedRecords]:
    if header.magic != MAGIC_V2:
        return read_messages(data)
    return RecordDecoder("", 0, ("timestamp",)).records(data, table_of([(0, header)]))
