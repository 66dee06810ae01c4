"""Deleting old segments. Kafka: UnifiedLog.deleteOldSegments.

Only whole segments go, from the oldest on, each for one of three reasons: it lies before the log
start offset; the log is larger than `retention.bytes` even without it; its newest record is older
than `retention.ms` (a segment whose records have no timestamps counts by when its file was last
written). The last two need `delete` in cleanup.policy. The active segment goes only by age, and
after a new one was begun. `why_not_deleted` tells of a segment what keeps it, or what deletes it:
see retention_rules.py.
"""

import logging
from collections.abc import Callable

from odradek.protocol.batch_header import NO_TIMESTAMP

from .log import PartitionLog
from .retention_rules import LogFacts, SegmentFacts, WhyNotDeleted, explain
from .segment import Segment

_logger = logging.getLogger(__name__)

# May this segment go, given the one behind it?
_Condition = Callable[[Segment, Segment | None], bool]


def delete_old_segments(log: PartitionLog, now_ms: int) -> int:
    """Delete what retention no longer keeps; returns how many segments went.

    Raises ApiError KAFKA_STORAGE_ERROR.
    """
    try:
        deleted = _delete_before_log_start(log, now_ms)
        if log.config.delete:
            deleted += _delete_over_size(log, now_ms) + _delete_over_age(log, now_ms)
    except OSError as error:
        raise log.failed("look for old segments", error) from error
    return deleted


def _delete_before_log_start(log: PartitionLog, now_ms: int) -> int:
    def is_before(_: Segment, following: Segment | None) -> bool:
        return following is not None and following.base_offset <= log.log_start_offset

    return _delete_while(log, is_before, "before the log start offset", now_ms)


def _delete_over_size(log: PartitionLog, now_ms: int) -> int:
    excess_bytes = log.size_bytes - log.config.retention_bytes
    if log.config.retention_bytes < 0 or excess_bytes < 0:
        return 0

    def is_excess(segment: Segment, _: Segment | None) -> bool:
        nonlocal excess_bytes
        excess_bytes -= segment.size_bytes
        return excess_bytes >= 0

    return _delete_while(log, is_excess, "over retention.bytes", now_ms)


def _delete_over_age(log: PartitionLog, now_ms: int) -> int:
    retention_ms = log.config.retention_ms
    if retention_ms < 0:
        return 0

    def is_old(segment: Segment, _: Segment | None) -> bool:
        if segment.largest_timestamp_ms() > now_ms:
            _logger.warning(
                "%s: a record of %r is from the future, and keeps it", log.name, segment
            )
        return now_ms - segment.largest_timestamp_ms() > retention_ms

    return _delete_while(log, is_old, "over retention.ms", now_ms)


def _delete_while(log: PartitionLog, condition: _Condition, reason: str, now_ms: int) -> int:
    count = 0
    segments = list(log.segments)
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        end_offset = log.log_end_offset if following is None else following.base_offset
        is_empty_active = following is None and not segment.size_bytes
        if end_offset > log.high_watermark or is_empty_active:
            break
        if not condition(segment, following):
            break
        count += 1
    if count:
        _logger.info("%s: deleting %d segments, %s", log.name, count, reason)
        log.delete_first_segments(count, now_ms)
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
