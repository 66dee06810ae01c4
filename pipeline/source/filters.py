"""What of a query's WHERE is done here and not by Spark.

Done here, and exactly: comparisons of topic and partition, which choose what is read; comparisons
of offset and timestamp with one value, which are spans; IS NOT NULL of what never is null.
Narrowed here and looked at again by Spark: IN for offsets and timestamps. The rest is Spark's.

A condition holds for rows where it is true: where it is null, it does not.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from odradek.pipeline.reading.partitions import TopicPartition

_NEVER_NULL = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})
_FAR = 1 << 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_US_PER_MS = 1000

_TESTS: Mapping[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    In: lambda found, values: found in values,
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: operator.contains,
}

# Whole numbers from the first to before the second.
Span = tuple[int, int]
EVERYTHING: Span = (-_FAR, _FAR)


@dataclass(slots=True)
class PushedFilters:
    """The conditions that were taken over; without any, everything is wanted."""

    of_topic: list[Filter] = field(default_factory=list)
    of_partition: list[Filter] = field(default_factory=list)
    offsets: Span = EVERYTHING
    times_ms: Span = EVERYTHING

    def has(self, partition: TopicPartition) -> bool:
        """Whether anything of this partition is wanted."""
        return all(_holds(each, partition.topic) for each in self.of_topic) and all(
            _holds(each, partition.partition) for each in self.of_partition
        )

    def narrow(self, start: int, end: int) -> Span:
        """What is wanted of these offsets."""
        return _common((start, end), self.offsets)

    def push(self, filters: Iterable[Filter], *, of_batches: bool) -> list[Filter]:
        """Take over what can be; the others are returned: Spark has to look at them."""
        return [each for each in filters if not self._take(each, of_batches=of_batches)]

    def _take(self, condition: Filter, *, of_batches: bool) -> bool:
        """Whether Spark need not look at it any more."""
        column = _column(condition)
        if isinstance(condition, IsNotNull):
            return column in _NEVER_NULL
        if column == "topic" and _compares_with(condition, str):
            self.of_topic.append(condition)
            return True
        if column == "partition" and _compares_with(condition, int):
            self.of_partition.append(condition)
            return True
        # A batch has many offsets and timestamps.
        span = None if of_batches else _span(condition)
        if span is None:
            return False
        if column == "offset" and _compares_with(condition, int):
            self.offsets = _common(self.offsets, span)
        elif column == "timestamp" and _compares_with(condition, datetime):
            self.times_ms = _common(self.times_ms, _in_ms(span))
        else:
            return False
        return not isinstance(condition, In)


def _column(condition: Filter) -> str | None:
    """The column that it is about; None for a part of a column."""
    if isinstance(condition, Not):
        return _column(condition.child)
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    return path[0] if len(path) == 1 else None


def _compares_with(condition: Filter, kind: type) -> bool:
    """Whether `_holds` and `_span` understand it, and the values are of that kind."""
    match condition:
        case Not(child):
            return isinstance(child, EqualTo) and _compares_with(child, kind)
        case StringStartsWith() | StringEndsWith() | StringContains():
            return kind is str
        case In(value=values):
            return all(value is None or _is_a(value, kind) for value in values)
        case (
            EqualTo(value=value)
            | EqualNullSafe(value=value)
            | GreaterThan(value=value)
            | GreaterThanOrEqual(value=value)
            | LessThan(value=value)
            | LessThanOrEqual(value=value)
        ):
            return _is_a(value, kind)
    return False


def _is_a(value: object, kind: type) -> bool:
    if isinstance(value, datetime):
        # Without a zone it would be another instant on every machine.
        return kind is datetime and value.tzinfo is not None
    return isinstance(value, kind) and not isinstance(value, bool)


def _holds(condition: Filter, found: Any) -> bool:
    """Whether it is true of a topic's name or a partition's number."""
    if isinstance(condition, Not):
        return not _holds(condition.child, found)
    value: Any = getattr(condition, "value")  # noqa: B009 - not every filter has one
    return _TESTS[type(condition)](found, value)


def _span(condition: Filter) -> Span | None:
    """The numbers of which it is true, or among which they are for IN; None if these are no span.

    Of timestamps, microseconds.
    """
    match condition:
        case In(value=values):
            numbers = [_number(value) for value in values if value is not None]
            return (min(numbers), max(numbers) + 1) if numbers else (0, 0)
        case EqualTo(value=value) | EqualNullSafe(value=value):
            return _number(value), _number(value) + 1
        case GreaterThan(value=value):
            return _number(value) + 1, _FAR
        case GreaterThanOrEqual(value=value):
            return _number(value), _FAR
        case LessThan(value=value):
            return -_FAR, _number(value)
        case LessThanOrEqual(value=value):
            return -_FAR, _number(value) + 1
    return None


def _number(value: Any) -> int:
    if isinstance(value, datetime):
        return 0 if value.tzinfo is None else (value - _EPOCH) // _MICROSECOND
    return value if isinstance(value, int) else 0


def _in_ms(span_us: Span) -> Span:
    """The milliseconds that lie in a span of microseconds."""
    first, behind = (edge if abs(edge) == _FAR else -(-edge // _US_PER_MS) for edge in span_us)
    return first, behind


def _common(one: Span, other: Span) -> Span:
    return max(one[0], other[0]), min(one[1], other[1])
