"""Rows of Arrow into records."""

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from odradek.pipeline.client_values import NOW_MS
from odradek.pipeline.option_values import OptionError
from odradek.pipeline.sink.rows import (
    ANY_PARTITION,
    WriteError,
    check_columns,
    outgoing_batch,
)

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
TIMES = pa.timestamp("us", tz="UTC")
TEXT, BYTES, INT, LONG = StringType(), BinaryType(), IntegerType(), LongType()


def schema(*columns: tuple[str, DataType]) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns])


def test_a_row_of_all_columns() -> None:
    batch = pa.record_batch(
        {
            "key": pa.array([b"k", None], pa.binary()),
            "value": pa.array(["ü", None], pa.string()),
            "topic": pa.array(["a", "b"]),
            "partition": pa.array([3, None], pa.int32()),
            "timestamp": pa.array([1_700_000_000_123_456, None], TIMES),
            "headers": pa.array([[("h", b"1"), ("h", None)], None], HEADERS),
        }
    )
    assert list(outgoing_batch(batch, None, with_timestamp=True).rows()) == [
        ("a", "ü".encode(), b"k", 3, 1_700_000_000_123, [("h", b"1"), ("h", None)]),
        ("b", None, None, ANY_PARTITION, NOW_MS, None),
    ]


def test_columns_that_are_not_there_are_left_to_the_producer() -> None:
    batch = pa.record_batch({"value": pa.array(["1", "2"], pa.large_string())})
    assert list(outgoing_batch(batch, "t", with_timestamp=False).rows()) == [
        ("t", b"1", None, ANY_PARTITION, NOW_MS, None),
        ("t", b"2", None, ANY_PARTITION, NOW_MS, None),
    ]


def test_the_option_topic_wins_over_the_column_and_timestamps_need_to_be_asked_for() -> None:
    columns = {"value": ["1"], "topic": ["column"], "timestamp": pa.array([7000], TIMES)}
    (row,) = outgoing_batch(pa.record_batch(columns), "option", with_timestamp=False).rows()
    assert (row[0], row[4]) == ("option", NOW_MS)


def test_the_first_millisecond_of_1970_is_not_now() -> None:
    batch = pa.record_batch({"value": ["1"], "timestamp": pa.array([999], TIMES)})
    assert [row[4] for row in outgoing_batch(batch, "t", with_timestamp=True).rows()] == [1]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"topic": pa.array(["a", None])}, "null topic"),
        ({"partition": pa.array([0, -1], pa.int32())}, "Invalid partition: -1"),
        ({"timestamp": pa.array([0, -5000], TIMES)}, "Invalid timestamp: -5 ms"),
    ],
)
def test_rows_that_no_record_can_be_made_of_are_refused(
    columns: dict[str, pa.Array], said: str
) -> None:
    topic = None if "topic" in columns else "t"
    batch = pa.record_batch({"value": ["1", "2"], **columns})
    with pytest.raises(WriteError, match=said):
        outgoing_batch(batch, topic, with_timestamp=True)


def test_schemas_that_can_be_written() -> None:
    every = schema(
        ("key", BYTES),
        ("value", BYTES),
        ("topic", TEXT),
        ("partition", INT),
        ("timestamp", TimestampType()),
        ("headers", from_arrow_type(HEADERS)),
        ("offset", LONG),
    )
    check_columns(every, None, with_timestamp=True)
    check_columns(schema(("value", TEXT)), "t", with_timestamp=False)


def test_columns_that_are_ignored_may_have_any_type() -> None:
    columns = schema(("value", TEXT), ("topic", INT), ("timestamp", LONG))
    check_columns(columns, "t", with_timestamp=False)
    with pytest.raises(OptionError, match="Column 'timestamp' is bigint"):
        check_columns(columns, "t", with_timestamp=True)


@pytest.mark.parametrize(
    ("columns", "topic", "said"),
    [
        ([("key", TEXT)], "t", "Required attribute 'value' not found: columns are key"),
        ([("value", TEXT)], None, "topic option required"),
        ([("value", INT)], "t", "Column 'value' is int; cast it to binary or string"),
        ([("value", TEXT), ("partition", LONG)], "t", "Column 'partition' is bigint"),
        ([("value", TEXT), ("headers", TEXT)], "t", "Column 'headers' is string; cast it to array"),
        ([("value", TEXT), ("topic", BYTES)], None, "Column 'topic' is binary"),
        ([("value", TEXT), ("value", TEXT)], "t", "Duplicate column"),
    ],
)
def test_schemas_that_cannot(
    columns: list[tuple[str, DataType]], topic: str | None, said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        check_columns(schema(*columns), topic, with_timestamp=False)


def test_a_timestamp_that_is_asked_for_must_be_there() -> None:
    with pytest.raises(OptionError, match="requires a column 'timestamp'"):
        check_columns(schema(("value", TEXT)), "t", with_timestamp=True)
