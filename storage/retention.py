"""Deletes old segments. Kafka: UnifiedLog.deleteOldSegments.

Only whole segments are deleted, from the oldest on. A segment is deleted for one of three reasons:

- All its offsets are before the log start offset.
- The log is larger than `retention.bytes` even without it.
- Its newest record is older than `retention.ms`. If its records have no timestamps, the
  modification time of its file is used.

The last two apply only if cleanup.policy contains `delete`. The active segment is deleted by age
only (by size too if retention.bytes is 0), after a new segment was created.

retention_explanation.py evaluates the same rules for every segment and says what keeps it. It reads
the newest timestamp of each segment for that. The check here runs often, so it stops at the first
segment that stays and reads no later one.
"""

import logging
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from .log import PartitionLog
from .reading_ahead import read_each
from .segment import Segment
from .time_text import utc

_logger = logging.getLogger(__name__)

# Whether this segment may be deleted, given the segment after it (None: it is the active one).
_Condition = Callable[[Segment, Segment | None], bool]


class OldSegments(NamedTuple):
    """How many of the log's oldest remaining segments are to be deleted, and the reason."""

    segments: int
    reason: str


def delete_old_segments(log: PartitionLog, now_ms: int) -> int:
    """Delete the segments that retention no longer keeps; return how many.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    found = find_old_segments(log, now_ms)
    if found:
        log.delete_first_segments(log_deletion(log, found), now_ms)
    return sum(old.segments for old in found)


def find_old_segments(log: PartitionLog, now_ms: int) -> list[OldSegments]:
    """Find the segments to delete, the oldest first. Raises ApiError KAFKA_STORAGE_ERROR."""
    segments = list(log.segments)
    found = []

    def find(reason: str, condition: _Condition) -> None:
        count = _count_while(log, segments, condition)
        del segments[:count]
        if count:
            found.append(OldSegments(count, reason))

    try:
        find("before the log start offset", _before_log_start(log))
        if log.config.delete:
            find("over retention.bytes", _over_size(log, segments))
            find("over retention.ms", _over_age(log, segments, now_ms))
    except OSError as error:
        raise log.failed("find old segments", error) from error
    return found


def log_deletion(log: PartitionLog, found: Sequence[OldSegments]) -> int:
    """Log which segments are deleted and why; return how many."""
    for old in found:
        _logger.info("%s: deleting %d segments, %s", log.name, old.segments, old.reason)
    return sum(old.segments for old in found)


def _before_log_start(log: PartitionLog) -> _Condition:
    def is_before(_: Segment, following: Segment | None) -> bool:
        return following is not None and following.base_offset <= log.log_start_offset

    return is_before


def _over_size(log: PartitionLog, segments: Sequence[Segment]) -> _Condition:
    excess_bytes = sum(segment.size_bytes for segment in segments) - log.config.retention_bytes

    def is_excess(segment: Segment, _: Segment | None) -> bool:
        nonlocal excess_bytes
        excess_bytes -= segment.size_bytes
        return log.config.retention_bytes >= 0 and excess_bytes >= 0

    return is_excess


def _over_age(log: PartitionLog, segments: Sequence[Segment], now_ms: int) -> _Condition:
    retention_ms = log.config.retention_ms
    largest_timestamps = read_each(segments, Segment.largest_timestamp_ms)

    def is_old(segment: Segment, _: Segment | None) -> bool:
        if retention_ms < 0:
            return False
        _, newest_ms = next(largest_timestamps)  # the segments are asked about in their order
        if newest_ms > now_ms and not segment.is_reported_as_future:
            segment.is_reported_as_future = True
            _logger.warning(
                "%s: segment %d stays until retention.ms after %s: a record of it is of that time,"
                " which is in the future",
                log.name,
                segment.base_offset,
                utc(newest_ms),
            )
        return now_ms - newest_ms > retention_ms

    return is_old


def _count_while(log: PartitionLog, segments: Sequence[Segment], condition: _Condition) -> int:
    count = 0
    for segment, following in zip_longest(segments, segments[1:]):
        end_offset = log.log_end_offset if following is None else following.base_offset
        is_empty_active = following is None and not segment.size_bytes
        if end_offset > log.high_watermark or is_empty_active:
            break
        if not condition(segment, following):
            break
        count += 1
    return count
