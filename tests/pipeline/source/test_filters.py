"""Pushed filters select exactly the rows that Spark would select."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.worker.data_source_pushdown_filters", reason="Spark 4.1")

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from odradek.pipeline.source.filters import push
from odradek.pipeline.source.row_selection import UNBOUNDED, RowSelection
from tests.pipeline.source.origins import tp

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COMPARISONS = (EqualTo, EqualNullSafe, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual)
TEXTS = (EqualTo, EqualNullSafe, GreaterThan, LessThan, StringStartsWith, StringContains)


def is_true(condition: Filter, row: dict[str, Any]) -> bool:
    """What Spark would say; no column here is ever null."""
    if isinstance(condition, Not):
        return not is_true(condition.child, row)
    found, value = row[condition.attribute[0]], getattr(condition, "value", None)
    return {
        EqualTo: lambda: found == value,
        EqualNullSafe: lambda: found == value,
        GreaterThan: lambda: found > value,
        GreaterThanOrEqual: lambda: found >= value,
        LessThan: lambda: found < value,
        LessThanOrEqual: lambda: found <= value,
        In: lambda: found in value,
        IsNotNull: lambda: True,
        StringStartsWith: lambda: found.startswith(value),
        StringEndsWith: lambda: found.endswith(value),
        StringContains: lambda: value in found,
    }[type(condition)]()


def keeps(selection: RowSelection, row: dict[str, Any]) -> bool:
    offset, ms = row["offset"], (row["timestamp"] - EPOCH) // timedelta(milliseconds=1)
    intervals = ((offset, selection.offsets), (ms, selection.times_ms or UNBOUNDED))
    return selection.has(tp(f"{row['topic']}-{row['partition']}")) and all(
        first <= number < end for number, (first, end) in intervals
    )


def compared(column: str, kinds: tuple[type, ...], values: Any) -> Any:
    one = st.builds(lambda kind, value: kind((column,), value), st.sampled_from(kinds), values)
    several = st.lists(values, max_size=3).map(lambda found: In((column,), tuple(found)))
    return one | several | one.filter(lambda each: type(each) is EqualTo).map(Not)


numbers = st.integers(-1, 5)
times = st.integers(-2500, 3500).map(lambda us: EPOCH + timedelta(microseconds=us))
conditions = st.one_of(
    compared("topic", (*TEXTS, StringEndsWith), st.sampled_from(["", "a", "ab", "ba", "b"])),
    compared("partition", COMPARISONS, numbers),
    compared("offset", COMPARISONS, numbers),
    compared("timestamp", COMPARISONS, times),
    st.sampled_from([IsNotNull(("offset",)), IsNotNull(("timestamp",))]),
)
rows = st.fixed_dictionaries(
    {
        "topic": st.sampled_from(["a", "ab", "ba"]),
        "partition": st.integers(0, 4),
        "offset": st.integers(0, 4),
        "timestamp": st.integers(-3, 4).map(lambda ms: EPOCH + timedelta(milliseconds=ms)),
    }
)


@given(st.lists(conditions, max_size=4), rows)
def test_pushed_and_remaining_filters_together_select_what_spark_selects(
    filters: list[Filter], row: dict[str, Any]
) -> None:
    selection = RowSelection()
    left = push(filters, selection, batch_view=False)
    kept = keeps(selection, row) and all(is_true(each, row) for each in left)
    assert kept == all(is_true(each, row) for each in filters)


@pytest.mark.parametrize("column", ["topic", "partition", "offset", "timestamp"])
def test_a_comparison_with_one_value_is_done_here(column: str) -> None:
    values = {"topic": "a", "partition": 1, "offset": 1, "timestamp": EPOCH}
    selection = RowSelection()
    assert push([EqualTo((column,), values[column])], selection, batch_view=False) == []
    assert selection != RowSelection()


@pytest.mark.parametrize(
    "condition",
    [
        EqualTo(("value",), b"x"),
        IsNotNull(("key",)),
        IsNull(("offset",)),
        EqualTo(("partition",), "1"),
        EqualTo(("offset",), True),
        EqualTo(("headers", "key"), "offset"),
        GreaterThan(("timestamp",), datetime(2026, 1, 1)),  # noqa: DTZ001 - that is the point
        Not(In(("topic",), ("a",))),
        StringContains(("partition",), "1"),
    ],
)
def test_unsupported_filters_are_left_to_spark(condition: Filter) -> None:
    selection = RowSelection()
    assert push([condition], selection, batch_view=False) == [condition]
    assert selection == RowSelection()


def test_comparisons_of_offsets_narrow_the_interval() -> None:
    selection = RowSelection()
    filters = [GreaterThanOrEqual(("offset",), 20), LessThan(("offset",), 50)]
    assert push([*filters, EqualTo(("topic",), "a")], selection, batch_view=False) == []
    assert selection.offsets == (20, 50)
    assert selection.has(tp("a-0"))
    assert not selection.has(tp("b-0"))


def test_nulls_in_a_list_match_nothing() -> None:
    selection = RowSelection()
    push([In(("partition",), (1, None)), In(("offset",), (None,))], selection, batch_view=False)
    assert selection.has(tp("a-1"))
    assert not selection.has(tp("a-0"))
    first, end = selection.offsets
    assert first >= end


def test_batches_are_only_chosen_by_topic_and_partition() -> None:
    filters = [EqualTo(("partition",), 1), GreaterThan(("offset",), 5)]
    assert push(filters, RowSelection(), batch_view=True) == filters[1:]
