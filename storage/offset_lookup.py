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
    """An offset, the timestamp of its record and its leader epoch; -1 where there is none."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


def find_timestamp(
    segments: SegmentList, timestamp_ms: int, start_offset: int
) -> OffsetAtTime | None:
    """The first record from `start_offset` on that is not older than `timestamp_ms`.

    A segment whose records carry no timestamps (magic 0) counts by when it was written, and where
    that is new enough, nothing is found: so it is in Kafka. There the first segment that is new
    enough ends the search also where all that was found in it lies before `start_offset`, and where
    it is empty, as a power cut may leave one whose records were deleted before they were synced.
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
    """The first record that has the largest timestamp of the log; None of magic 0."""
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
    """Where segments begin that were last written at or before a time, and `end_offset`, which is
    where readers end; newest first. -1: all of them; -2: the oldest alone.

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
