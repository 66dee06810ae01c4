"""Offsets by timestamp, over the segments of one log. Kafka: UnifiedLog.fetchOffsetByTimestamp."""

from typing import NamedTuple

from .segment import RecordAtTime
from .segment_list import SegmentList


class OffsetAtTime(NamedTuple):
    """An offset, the timestamp of its record and its leader epoch; -1 where there is none."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


def find_timestamp(
    segments: SegmentList, timestamp_ms: int, start_offset: int
) -> OffsetAtTime | None:
    """The first record from `start_offset` on that is not older than `timestamp_ms`."""
    for segment in segments:
        if segment.largest_timestamp_ms() >= timestamp_ms:
            record = segment.find_timestamp(timestamp_ms, start_offset)
            if record is not None:
                return _offset_of(record)
    return None


def newest_record(segments: SegmentList) -> OffsetAtTime | None:
    """The first record that has the largest timestamp of the log."""
    newest = max(segments, key=lambda segment: segment.newest.timestamp_ms)
    record = newest.newest_record()
    return None if record is None else _offset_of(record)


def _offset_of(record: RecordAtTime) -> OffsetAtTime:
    return OffsetAtTime(record.timestamp_ms, record.offset, record.leader_epoch)
