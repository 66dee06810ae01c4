"""Explains why a segment is kept, or which retention rule deletes it next.

There are three rules. A segment is deleted if one of them is met:

    log start   all its offsets are before the log start offset (DeleteRecords moves it)
    size        the segments after it are together at least as large as retention.bytes
    age         its newest record is older than retention.ms; the modification time of the file is
                used if the records have no timestamps

Segments are deleted from the oldest on, so a segment that is old enough waits for those before it.
The active segment is deleted by age only (by size too if retention.bytes is 0), an empty one never.
Without `delete` in cleanup.policy only the log start rule applies.

An open transaction keeps no segment from being deleted. With `compact` in cleanup.policy it keeps
the cleaner from every segment that ends after its first offset.

retention.py deletes the segments. It evaluates the same rules lazily, from the oldest segment on.
`explain` works on plain values, so that it can be used for a log that is served and for the files
of a stopped broker.
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import NO_TIMESTAMP

from .log import PartitionLog
from .segment import Segment
from .time_text import duration, utc


class Rule(Enum):
    """A rule of retention, by the setting that controls it."""

    LOG_START = "log start offset"
    SIZE = "retention.bytes"
    AGE = "retention.ms"


class SegmentFacts(NamedTuple):
    """One segment. `newest_ms` is a record's timestamp or, with `is_file_time`, the file's."""

    base_offset: int
    end_offset: int  # the next segment's base offset, or the log end offset
    size_bytes: int
    newest_ms: int
    is_file_time: bool


class LogFacts(NamedTuple):
    """One log; the last segment is the active one.

    `last_stable_offset` is the first offset of the oldest open transaction; None: none is open.
    """

    config: TopicConfig
    log_start_offset: int
    segments: Sequence[SegmentFacts]
    last_stable_offset: int | None = None


class RuleAnswer(NamedTuple):
    """The result of one rule for one segment. Fields that do not apply to the rule are None."""

    rule: Rule
    is_met: bool
    text: str
    eligible_at_ms: int | None = None  # AGE: the first time at which the rule is met
    missing_bytes: int | None = None  # SIZE: how many bytes must be appended first
    missing_offsets: int | None = None  # LOG_START: how far the log start offset must move


class WhyNotDeleted(NamedTuple):
    """What keeps a segment, or the rule by which the next check deletes it.

    `is_uncleanable`: an open transaction keeps the cleaner from the segment.
    """

    segment: SegmentFacts
    is_active: bool
    deleted_by: Rule | None
    eligible_at_ms: int | None  # by age, after all older ones; None: never by age
    waits_for: int | None  # the base offset of the oldest kept segment before it
    rules: tuple[RuleAnswer, ...]
    is_uncleanable: bool
    text: str


def explain(log: LogFacts, now_ms: int) -> list[WhyNotDeleted]:
    """Explain every segment of the log, the oldest first."""
    return list(explanations(log, now_ms))


def explanations(log: LogFacts, now_ms: int) -> Iterator[WhyNotDeleted]:
    """Explain the segments one by one, the oldest first."""
    bytes_after = sum(segment.size_bytes for segment in log.segments)
    waits_for: int | None = None
    oldest_eligible_ms: int | None = 0  # when every segment so far is old enough; None: never
    for index, segment in enumerate(log.segments):
        is_active = index == len(log.segments) - 1
        bytes_after -= segment.size_bytes
        rules = _evaluate(log, segment, bytes_after, now_ms, is_active=is_active)
        met = [rule.rule for rule in rules if rule.is_met]
        deleted_by = met[0] if met and (met[0] is not Rule.AGE or waits_for is None) else None
        held_by = waits_for if segment.size_bytes or not is_active else None
        eligible_ms = _later(oldest_eligible_ms, rules[-1].eligible_at_ms)
        uncleanable = not is_active and deleted_by is None and _is_uncleanable(log, segment)
        text = _summary(rules, deleted_by, held_by)
        if uncleanable:
            stable = log.last_stable_offset
            text += f"; it is not cleaned: a transaction is open from offset {stable} on"
        yield WhyNotDeleted(
            segment=segment,
            is_active=is_active,
            deleted_by=deleted_by,
            eligible_at_ms=eligible_ms,
            waits_for=held_by if deleted_by is None else None,
            rules=rules,
            is_uncleanable=uncleanable,
            text=text,
        )
        if not met:
            waits_for = segment.base_offset if waits_for is None else waits_for
            oldest_eligible_ms = eligible_ms


def _later(one_ms: int | None, other_ms: int | None) -> int | None:
    """The later of two times; None means never."""
    return None if one_ms is None or other_ms is None else max(one_ms, other_ms)


def _is_uncleanable(log: LogFacts, segment: SegmentFacts) -> bool:
    stable = log.last_stable_offset
    return log.config.compact and stable is not None and segment.end_offset > stable


def _summary(rules: tuple[RuleAnswer, ...], deleted_by: Rule | None, waits_for: int | None) -> str:
    if deleted_by is not None:
        text = next(rule.text for rule in rules if rule.rule is deleted_by)
        return f"the next check deletes it: {text}"
    reasons = [rule.text for rule in rules if not rule.is_met]
    if waits_for is not None:
        reasons.append(f"segments are deleted from the oldest on, and segment {waits_for} stays")
    return "; ".join(dict.fromkeys(reasons))


def _evaluate(
    log: LogFacts, segment: SegmentFacts, bytes_after: int, now_ms: int, *, is_active: bool
) -> tuple[RuleAnswer, RuleAnswer, RuleAnswer]:
    """The results by log start, size and age; `bytes_after`: the size of all later segments."""
    if is_active and not segment.size_bytes:
        text = "it is the active segment, and empty"
        return _unmet(Rule.LOG_START, text), _unmet(Rule.SIZE, text), _unmet(Rule.AGE, text)
    start = _by_log_start(log, segment, is_active=is_active)
    if not log.config.delete:
        policy = ",".join(log.config.cleanup_policy) or "empty"
        text = f"cleanup.policy is {policy}: neither size nor age count"
        return start, _unmet(Rule.SIZE, text), _unmet(Rule.AGE, text)
    by_size = _by_size(log.config, bytes_after, is_active=is_active)
    return start, by_size, _by_age(log.config, segment, now_ms)


def _unmet(rule: Rule, text: str) -> RuleAnswer:
    return RuleAnswer(rule, False, text)


def _by_log_start(log: LogFacts, segment: SegmentFacts, *, is_active: bool) -> RuleAnswer:
    start = log.log_start_offset
    if is_active:
        return _unmet(Rule.LOG_START, "the active segment is not deleted by the log start offset")
    if start >= segment.end_offset:
        text = f"all its offsets are before the log start offset {start}"
        return RuleAnswer(Rule.LOG_START, True, text, missing_offsets=0)
    text = (
        f"the log starts at offset {start}, the segment holds offsets to {segment.end_offset - 1}"
    )
    return RuleAnswer(Rule.LOG_START, False, text, missing_offsets=segment.end_offset - start)


def _by_size(config: TopicConfig, bytes_after: int, *, is_active: bool) -> RuleAnswer:
    limit = config.retention_bytes
    if limit < 0:
        return _unmet(Rule.SIZE, "retention.bytes is -1: the size is not limited")
    if is_active and limit > 0:
        text = "it is the active segment, deleted by size only once another one follows it"
        return _unmet(Rule.SIZE, text)
    met = bytes_after >= limit
    text = f"the segments after it have {bytes_after} bytes, retention.bytes is {limit}"
    if not met:
        text += f": {limit - bytes_after} are missing"
    return RuleAnswer(Rule.SIZE, met, text, missing_bytes=max(limit - bytes_after, 0))


def _by_age(config: TopicConfig, segment: SegmentFacts, now_ms: int) -> RuleAnswer:
    limit_ms = config.retention_ms
    if limit_ms < 0:
        return _unmet(Rule.AGE, "retention.ms is -1: the age is not limited")
    newest = "its file was last written" if segment.is_file_time else "its newest record is of"
    text = f"{newest} {utc(segment.newest_ms)}, retention.ms is {limit_ms} ({duration(limit_ms)})"
    if segment.is_file_time:
        text = f"its records have no timestamps, {text}"
    eligible_at_ms = segment.newest_ms + limit_ms + 1
    if now_ms >= eligible_at_ms:
        return RuleAnswer(Rule.AGE, True, text, eligible_at_ms=eligible_at_ms)
    if segment.newest_ms > now_ms:
        text += ", which is in the future"
    text += f": it stays until {utc(eligible_at_ms)}"
    return RuleAnswer(Rule.AGE, False, text, eligible_at_ms=eligible_at_ms)


def why_not_deleted(log: PartitionLog, segment: Segment, now_ms: int) -> WhyNotDeleted:
    """Explain one segment of an open log.

    Raises OSError, CorruptRecordError; KeyError if the log has no such segment any more.
    """
    for found in explain(retention_facts(log), now_ms):
        if found.segment.base_offset == segment.base_offset:
            return found
    raise KeyError(f"{log.name} has no segment {segment.base_offset}")


def retention_facts(log: PartitionLog) -> LogFacts:
    """Collect the values of an open log that the rules use. Raises OSError, CorruptRecordError."""
    segments = list(log.segments)
    ends = [*(segment.base_offset for segment in segments[1:]), log.log_end_offset]
    facts = [segment_facts(*each) for each in zip(segments, ends, strict=True)]
    return LogFacts(log.config, log.log_start_offset, facts, log.producers.first_unstable_offset)


def segment_facts(segment: Segment, end_offset: int) -> SegmentFacts:
    """Collect the values of a segment of an open log. Raises OSError, CorruptRecordError.

    `end_offset`: the next segment's base offset, or the log end offset.
    """
    return SegmentFacts(
        segment.base_offset,
        end_offset,
        segment.size_bytes,
        segment.largest_timestamp_ms(),
        segment.newest.timestamp_ms == NO_TIMESTAMP,
    )
