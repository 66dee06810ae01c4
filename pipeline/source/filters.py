"""The conditions of a query's WHERE clause that the reader applies, instead of Spark.

Applied exactly: comparisons of topic and partition, which select the partitions to read;
comparisons of offset and timestamp with one value, which are intervals; IS NOT NULL of a column
that is never null. Applied in part, and applied again by Spark: IN on offsets and timestamps. Spark
applies the rest.

A row is selected if the condition is true, not if it is null.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
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

from .row_selection import INFINITY, UNBOUNDED, Interval, RowSelection, intersection

_NEVER_NULL = frozenset({"topic", "partition", "offset", "timestamp", "timestampType"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_US_PER_MS = 1000

_OPERATORS: Mapping[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    In: lambda value, values: value in values,
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: operator.contains,
}


def push(filters: Iterable[Filter], selection: RowSelection, *, batch_view: bool) -> list[Filter]:
    """Apply the conditions to a selection; return those that Spark must apply, too."""
    return [each for each in filters if not _push(each, selection, batch_view=batch_view)]


def _push(condition: Filter, selection: RowSelection, *, batch_view: bool) -> bool:
    """Return whether the condition is applied exactly, so Spark need not apply it again."""
    column = _column(condition)
    if isinstance(condition, IsNotNull):
        return column in _NEVER_NULL
    if column == "topic" and _compares_with(condition, str):
        selection.of_topic.append(partial(_is_true, condition))
        return True
    if column == "partition" and _compares_with(condition, int):
        selection.of_partition.append(partial(_is_true, condition))
        return True
    # A batch has many offsets and timestamps.
    interval = None if batch_view else _interval(condition)
    if interval is None:
        return False
    if column == "offset" and _compares_with(condition, int):
        selection.offsets = intersection(selection.offsets, interval)
    elif column == "timestamp" and _compares_with(condition, datetime):
        selection.times_ms = intersection(selection.times_ms or UNBOUNDED, _in_ms(interval))
    else:
        return False
    return not isinstance(condition, In)


def _column(condition: Filter) -> str | None:
    """Return the column of the condition; None for a field within a column."""
    if isinstance(condition, Not):
        return _column(condition.child)
    path: tuple[str, ...] = getattr(condition, "attribute", ())
    return path[0] if len(path) == 1 else None


def _compares_with(condition: Filter, kind: type) -> bool:
    """Whether `_is_true` and `_interval` support it, and its values are of this kind."""
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
        # Without a time zone it would be another instant on each machine.
        return kind is datetime and value.tzinfo is not None
    return isinstance(value, kind) and not isinstance(value, bool)


def _is_true(condition: Filter, actual: Any) -> bool:
    """Whether it is true of a topic's name or a partition's number."""
    if isinstance(condition, Not):
        return not _is_true(condition.child, actual)
    value: Any = getattr(condition, "value")  # noqa: B009 - not every filter has one
    return _OPERATORS[type(condition)](actual, value)


def _interval(condition: Filter) -> Interval | None:
    """Return the numbers for which it is true; None if they are no interval.

    For IN, the smallest interval that contains the values. Timestamps are in microseconds.
    """
    match condition:
        case In(value=values):
            numbers = [_number(value) for value in values if value is not None]
            return (min(numbers), max(numbers) + 1) if numbers else (0, 0)
        case EqualTo(value=value) | EqualNullSafe(value=value):
            return _number(value), _number(value) + 1
        case GreaterThan(value=value):
            return _number(value) + 1, INFINITY
        case GreaterThanOrEqual(value=value):
            return _number(value), INFINITY
        case LessThan(value=value):
            return -INFINITY, _number(value)
        case LessThanOrEqual(value=value):
            return -INFINITY, _number(value) + 1
    return None


def _number(value: Any) -> int:
    if isinstance(value, datetime):
        return 0 if value.tzinfo is None else (value - _EPOCH) // _MICROSECOND
    return value if isinstance(value, int) else 0


def _in_ms(interval_us: Interval) -> Interval:
    """Return the whole milliseconds in an interval of microseconds."""
    first, end = (edge if abs(edge) == INFINITY else -(-edge // _US_PER_MS) for edge in interval_us)
    return first, end
