"""Deleting old segments. Kafka: UnifiedLog.deleteOldSegments.

Only whole segments go, from the oldest on, each for one of three reasons: it lies before the log
start offset; the log is larger than `retention.bytes` even without it; its newest record is older
than `retention.ms` (a segment whose records have no timestamps counts by when its file was last
written). The last two need `delete` in cleanup.policy. The active segment goes only by age, and
after a new one was begun. `why_not_deleted` tells of a segment what keeps it, or what deletes it:
see retention_rules.py.
"""

import logging
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from odradek.protocol.batch_header import NO_TIMESTAMP

from .log import PartitionLog
from .retention_rules import LogFacts, SegmentFacts, WhyNotDeleted, explain
from .segment import Segment

_logger = logging.getLogger(__name__)

# May this segment go, given the one behind it?
_Condition = Callable[[Segment, Segment | None], bool]


# The condition under one rule, for these segments of the log.
_Rule = Callable[[PartitionLog, Sequence[Segment], int], _Condition]


class OldSegments(NamedTuple):
    """The log's next `segments` go, the oldest first, and why."""

    segments: int
    reason: str


def delete_old_segments(log: PartitionLog, now_ms: int) -> int:
    """Delete what retention no longer keeps; returns how many segments went.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    found = find_old_segments(log, now_ms)
    if found:
        log.delete_first_segments(announce(log, found), now_ms)
    return sum(old.segments for old in found)


def find_old_segments(log: PartitionLog, now_ms: int) -> list[OldSegments]:
    """What retention no longer keeps, the oldest first. Raises ApiError KAFKA_STORAGE_ERROR."""
    segments = list(log.segments)
    rules: list[tuple[str, _Rule]] = [("before the log start offset", _before_log_start)]
    if log.config.delete:
        rules += [("over retention.bytes", _over_size), ("over retention.ms", _over_age)]
    found = []
    try:
        for reason, condition in rules:
            count = _count_while(log, segments, condition(log, segments, now_ms))
            segments = segments[count:]
            if count:
                found.append(OldSegments(count, reason))
    except OSError as error:
        raise log.failed("look for old segments", error) from error
    return found


def announce(log: PartitionLog, found: Sequence[OldSegments]) -> int:
    """Say what goes and why; how many segments that are."""
    for old in found:
        _logger.info("%s: deleting %d segments, %s", log.name, old.segments, old.reason)
    return sum(old.segments for old in found)


def _before_log_start(log: PartitionLog, _segments: Sequence[Segment], _now_ms: int) -> _Condition:
    def is_before(_: Segment, following: Segment | None) -> bool:
        return following is not None and following.base_offset <= log.log_start_offset

    return is_before


def _over_size(log: PartitionLog, segments: Sequence[Segment], _now_ms: int) -> _Condition:
    excess_bytes = sum(segment.size_bytes for segment in segments) - log.config.retention_bytes

    def is_excess(segment: Segment, _: Segment | None) -> bool:
        nonlocal excess_bytes
        excess_bytes -= segment.size_bytes
        return log.config.retention_bytes >= 0 and excess_bytes >= 0

    return is_excess


def _over_age(log: PartitionLog, _segments: Sequence[Segment], now_ms: int) -> _Condition:
    retention_ms = log.config.retention_ms

    def is_old(segment: Segment, _: Segment | None) -> bool:
        if retention_ms < 0:
            return False
        if segment.largest_timestamp_ms() > now_ms:
            _logger.warning(
                "%s: a record of %r is from the future, and keeps it", log.name, segment
            )
        return now_ms - segment.largest_timestamp_ms() > retention_ms

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


def why_not_deleted(log: PartitionLog, segment: Segment, now_ms: int) -> WhyNotDeleted:
    """What keeps one of its segments, and until when; or which rule has the next check delete it.

    Raises OSError, CorruptRecordError; KeyError for a segment that is no longer there.
    """
    for found in explain(retention_facts(log), now_ms):
        if found.segment.base_offset == segment.base_offset:
            return found
    raise KeyError(f"{log.name} has no segment {segment.base_offset}")


def retention_facts(log: PartitionLog) -> LogFacts:
    """What the rules of retention ask of a log. Raises OSError, CorruptRecordError."""
    segments = list(log.segments)
    ends = [*(segment.base_offset for segment in segments[1:]), log.log_end_offset]
    facts = [
        SegmentFacts(
            segment.base_offset,
            end_offset,
            segment.size_bytes,
            segment.largest_timestamp_ms(),
            segment.newest.timestamp_ms == NO_TIMESTAMP,
        )
        for segment, end_offset in zip(segments, ends, strict=True)
    ]
    return LogFacts(log.config, log.log_start_offset, facts)
