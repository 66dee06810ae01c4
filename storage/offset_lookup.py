"""Offsets by timestamp, over the segments of one log. Kafka: UnifiedLog.fetchOffsetByTimestamp."""

from collections.abc import Iterator
from typing import NamedTuple

from odradek.protocol.any_batch import read_any_records
from odradek.protocol.batch_header import NO_TIMESTAMP, BatchHeader
from odradek.protocol.message_set import MAGIC_V0
from odradek.protocol.record import Record

from .segment import Segment
from .segment_list import SegmentList

NEWEST, OLDEST = -1, -2


class OffsetAtTime(NamedTuple):
    """An offset, the timestamp of its record and its leader epoch; -1 for an unknown one."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


def find_timestamp(
    segments: SegmentList, timestamp_ms: int, start_offset: int
) -> OffsetAtTime | None:
    """The first record from `start_offset` on that is not older than `timestamp_ms`.

    For a segment whose records have no timestamps (magic 0), the modification time of its file is
    used. If that is new enough, the search ends and nothing is found, as in Kafka.

    Kafka also ends the search at the first segment that is new enough, if all its matching records
    are before `start_offset`, or if it is empty. (A power cut may leave an empty segment whose
    records were deleted before they were synced.) Here the search continues in the next segment.
    """
    for segment in segments:
        if segment.largest_timestamp_ms() >= timestamp_ms:
            found = _find_in(segment, timestamp_ms, start_offset)
            if found is not None:
                return found
            if segment.size_bytes and segment.newest.timestamp_ms == NO_TIMESTAMP:
                return None
    return None


def _find_in(segment: Segment, timestamp_ms: int, start_offset: int) -> OffsetAtTime | None:
    for position, header in segment.headers_from_time(timestamp_ms, start_offset):
        if header.max_timestamp >= timestamp_ms:
            for record in _records(segment, position, header):
                if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
                    return _offset_at_time(record, header)
    return None


def newest_record(segments: SegmentList) -> OffsetAtTime | None:
    """The first record that has the largest timestamp of the log; None if it is of magic 0."""
    segment = max(segments, key=lambda segment: segment.newest.timestamp_ms)
    newest = segment.newest
    for position, header in segment.headers_from(newest.offset):
        if header.max_timestamp == newest.timestamp_ms:
            if header.magic == MAGIC_V0:
                return None
            for record in _records(segment, position, header):
                if record.timestamp_ms == newest.timestamp_ms:
                    return _offset_at_time(record, header)
    return None


def _records(segment: Segment, position: int, header: BatchHeader) -> Iterator[Record]:
    data = segment.files.pread_exact(segment.file, header.size_bytes, position)
    return read_any_records(data, header)


def _offset_at_time(record: Record, header: BatchHeader) -> OffsetAtTime:
    return OffsetAtTime(record.timestamp_ms, record.offset, header.partition_leader_epoch)


def offsets_written_before(
    segments: SegmentList, timestamp_ms: int, start_offset: int, end_offset: int, now_ms: int
) -> list[int]:
    """Base offsets of segments last written at or before a time, and `end_offset`, in descending
    order. `timestamp_ms` -1 (NEWEST) selects all, -2 (OLDEST) only the first segment.

    Kafka 3: UnifiedLog.legacyFetchOffsetsBefore.
    """
    starts = [
        (min(max(segment.base_offset, start_offset), end_offset), segment.modified_ms())
        for segment in segments
    ]
    if segments.active.size_bytes:
        starts.append((end_offset, now_ms))
    if timestamp_ms == OLDEST:
        return [starts[0][0]]
    while starts and timestamp_ms != NEWEST and starts[-1][1] > timestamp_ms:
        starts.pop()
    return sorted((offset for offset, _ in starts), reverse=True)
