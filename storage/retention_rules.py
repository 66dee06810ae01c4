"""When a segment may be deleted, and by which rule: the answer to "why is this still here?".

Three rules, each of which is enough; retention.py carries them out:

    log start   all of it lies before the log start offset (DeleteRecords moves that)
    size        the segments behind it alone are as large as retention.bytes
    age         its newest record, or the file where records have no times, is older than
                retention.ms

Segments go from the oldest on, so one that would go by age waits for those before it. The active
segment goes by age only (by size too where retention.bytes is 0), an empty one never. Without
`delete` in cleanup.policy only the log start counts.

Here are only values: the same questions are answered for a log that is served and for files.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from odradek.config.topic_config import TopicConfig

_UNITS = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1000))


class Rule(Enum):
    """Why a segment is deleted."""

    LOG_START = "log start offset"
    SIZE = "retention.bytes"
    AGE = "retention.ms"


class SegmentFacts(NamedTuple):
    """One segment. `newest_ms` is of a record or, with `is_file_time`, of the file."""

    base_offset: int
    end_offset: int  # where the next one begins, or the log ends
    size_bytes: int
    newest_ms: int
    is_file_time: bool


class LogFacts(NamedTuple):
    """One log; the last segment is the active one."""

    config: TopicConfig
    log_start_offset: int
    segments: Sequence[SegmentFacts]


class RuleAnswer(NamedTuple):
    """What one rule says of a segment. Not every rule can tell what is missing."""

    rule: Rule
    is_met: bool
    text: str
    eligible_at_ms: int | None = None  # AGE: the first time at which it is met
    missing_bytes: int | None = None  # SIZE: how many must be appended behind the segment
    missing_offsets: int | None = None  # LOG_START: how far the log start must move


class WhyNotDeleted(NamedTuple):
    """Why a segment is there, or by which rule the next check deletes it."""

    segment: SegmentFacts
    is_active: bool
    deleted_by: Rule | None
    eligible_at_ms: int | None  # by age, the older ones counted in; None: time does not help
    waits_for: int | None  # the base offset of the oldest segment before it that stays
    rules: tuple[RuleAnswer, ...]
    text: str


def explain(log: LogFacts, now_ms: int) -> list[WhyNotDeleted]:
    """What keeps each segment, if anything does; the oldest first."""
    found: list[WhyNotDeleted] = []
    behind = sum(segment.size_bytes for segment in log.segments)
    waits_for: int | None = None
    oldest_eligible_ms: int | None = 0  # when age has met all that stay until here
    for index, segment in enumerate(log.segments):
        is_active = index == len(log.segments) - 1
        behind -= segment.size_bytes
        rules = _answers(log, segment, behind, now_ms, is_active=is_active)
        met = [rule.rule for rule in rules if rule.is_met]
        deleted_by = met[0] if met and (met[0] is not Rule.AGE or waits_for is None) else None
        held_by = waits_for if segment.size_bytes or not is_active else None
        eligible_ms = _later(oldest_eligible_ms, rules[-1].eligible_at_ms)
        found.append(
            WhyNotDeleted(
                segment=segment,
                is_active=is_active,
                deleted_by=deleted_by,
                eligible_at_ms=eligible_ms,
                waits_for=held_by if deleted_by is None else None,
                rules=rules,
                text=_summary(rules, deleted_by, held_by),
            )
        )
        if not met:
            waits_for = segment.base_offset if waits_for is None else waits_for
            oldest_eligible_ms = eligible_ms
    return found


def _later(one_ms: int | None, other_ms: int | None) -> int | None:
    """The later time; None, which is never, where one is that."""
    return None if one_ms is None or other_ms is None else max(one_ms, other_ms)


def _summary(rules: tuple[RuleAnswer, ...], deleted_by: Rule | None, waits_for: int | None) -> str:
    if deleted_by is not None:
        text = next(rule.text for rule in rules if rule.rule is deleted_by)
        return f"the next check deletes it: {text}"
    reasons = [rule.text for rule in rules if not rule.is_met]
    if waits_for is not None:
        reasons.append(f"segments go from the oldest on, and segment {waits_for} stays")
    return "; ".join(dict.fromkeys(reasons))


def _answers(
    log: LogFacts, segment: SegmentFacts, behind: int, now_ms: int, *, is_active: bool
) -> tuple[RuleAnswer, RuleAnswer, RuleAnswer]:
    """By log start, size and age; `behind` is the size of all segments behind this one."""
    if is_active and not segment.size_bytes:
        text = "it is the active segment, and empty"
        return _unmet(Rule.LOG_START, text), _unmet(Rule.SIZE, text), _unmet(Rule.AGE, text)
    start = _by_log_start(log, segment, is_active=is_active)
    if not log.config.delete:
        policy = ",".join(log.config.cleanup_policy) or "empty"
        text = f"cleanup.policy is {policy}: neither size nor age count"
        return start, _unmet(Rule.SIZE, text), _unmet(Rule.AGE, text)
    by_size = _by_size(log.config, behind, is_active=is_active)
    return start, by_size, _by_age(log.config, segment, now_ms)


def _unmet(rule: Rule, text: str) -> RuleAnswer:
    return RuleAnswer(rule, False, text)


def _by_log_start(log: LogFacts, segment: SegmentFacts, *, is_active: bool) -> RuleAnswer:
    start = log.log_start_offset
    if is_active:
        return _unmet(Rule.LOG_START, "the active segment does not go by the log start offset")
    if start >= segment.end_offset:
        text = f"all of it lies before the log start offset {start}"
        return RuleAnswer(Rule.LOG_START, True, text, missing_offsets=0)
    text = f"the log starts at offset {start}, and it holds offsets up to {segment.end_offset - 1}"
    return RuleAnswer(Rule.LOG_START, False, text, missing_offsets=segment.end_offset - start)


def _by_size(config: TopicConfig, behind: int, *, is_active: bool) -> RuleAnswer:
    limit = config.retention_bytes
    if limit < 0:
        return _unmet(Rule.SIZE, "retention.bytes is -1: no size is too large")
    if is_active and limit > 0:
        text = "it is the active segment, which goes by size only once another one follows it"
        return _unmet(Rule.SIZE, text)
    met = behind >= limit
    text = f"the segments behind it have {behind} bytes, retention.bytes is {limit}"
    if not met:
        text += f": {limit - behind} are missing"
    return RuleAnswer(Rule.SIZE, met, text, missing_bytes=max(limit - behind, 0))


def _by_age(config: TopicConfig, segment: SegmentFacts, now_ms: int) -> RuleAnswer:
    limit_ms = config.retention_ms
    if limit_ms < 0:
        return _unmet(Rule.AGE, "retention.ms is -1: no record is too old")
    newest = "its file was last written" if segment.is_file_time else "its newest record is of"
    text = f"{newest} {utc(segment.newest_ms)}, retention.ms is {limit_ms} ({duration(limit_ms)})"
    if segment.is_file_time:
        text = f"its records have no timestamps, {text}"
    eligible_at_ms = segment.newest_ms + limit_ms + 1
    if now_ms >= eligible_at_ms:
        return RuleAnswer(Rule.AGE, True, text, eligible_at_ms=eligible_at_ms)
    if segment.newest_ms > now_ms:
        text += ", and that lies in the future"
    text += f": it stays until {utc(eligible_at_ms)}"
    return RuleAnswer(Rule.AGE, False, text, eligible_at_ms=eligible_at_ms)


def utc(time_ms: int) -> str:
    """A time as people read it; what no calendar holds stays a number."""
    try:
        moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{time_ms} ms since 1970"
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")


def duration(time_ms: int) -> str:
    """A duration in the largest unit that divides it."""
    for name, unit_ms in _UNITS:
        if time_ms and time_ms % unit_ms == 0:
            count = time_ms // unit_ms
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{time_ms} ms"
