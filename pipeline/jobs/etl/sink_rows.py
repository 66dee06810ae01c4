"""Turns the SQL's result into records: the columns of the sink, always with `topic`.

A column that would not be written is an error. Spark's Kafka sink ignores it.
"""

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType, VariantType

from odradek.pipeline.jobs import JobError
from odradek.pipeline.option_values import OptionError
from odradek.pipeline.sink.rows import check_columns

from .failures import first_line
from .job_file import Sink

_COLUMNS = ("topic", "key", "value", "headers", "partition", "timestamp")


def sink_rows(frame: DataFrame, sink: Sink) -> DataFrame:
    """Return the records, with keys and values as bytes. Raises JobError."""
    twice = sorted({name for name in frame.columns if frame.columns.count(name) > 1})
    if twice:
        raise JobError(f"the SQL yields two columns {twice[0]}: rename one (AS …)")
    records = _pack_json(frame, sink) if sink.value == "json" else _check_names(frame, sink)
    try:
        check_columns(records.schema, None, with_timestamp="timestamp" in records.columns)
    except OptionError as error:
        raise JobError(f"the columns for the sink: {error}") from None
    return records.withColumns(
        {name: sf.col(name).cast("binary") for name in ("key", "value") if name in records.columns}
    )


def _check_names(frame: DataFrame, sink: Sink) -> DataFrame:
    """Check that each column of the SQL is one of the sink's, and add `sink.topic`."""
    names = frame.columns
    if "value" not in names:
        raise JobError(
            f"the SQL yields the columns {', '.join(names)}. A column 'value' is required: rename "
            "one, or set sink.value: json, which packs them"
        )
    others = [name for name in names if name not in _COLUMNS]
    if others:
        raise JobError(
            f"the SQL yields {', '.join(others)}, which a record cannot hold: its columns are "
            f"{', '.join(_COLUMNS)} (sink.value: json packs all columns into the value)"
        )
    if sink.topic is None and "topic" not in names:
        raise JobError("sink.topic is missing, and the SQL yields no column 'topic'")
    if sink.topic is not None and "topic" in names:
        raise JobError("sink.topic is set, and the SQL yields a column 'topic': use only one")
    return frame if sink.topic is None else frame.withColumn("topic", sf.lit(sink.topic))


def _pack_json(frame: DataFrame, sink: Sink) -> DataFrame:
    """Use the columns that the sink names, and pack all others into the value."""
    columns_by_part = {
        "topic": sink.topic_column,
        "key": sink.key,
        "headers": sink.headers,
        "partition": sink.partition,
        "timestamp": sink.timestamp,
    }
    named = {name: column for name, column in columns_by_part.items() if column is not None}
    for name, column in named.items():
        if column not in frame.columns:
            place = "topic_column" if name == "topic" else name
            raise JobError(
                f"sink.{place}: the SQL yields no column {column}. "
                f"It yields {', '.join(frame.columns)}"
            )
    rest = [name for name in frame.columns if name not in named.values()]
    if not rest:
        raise JobError("sink.value: there is no other column to pack")
    columns = {name: _column(column) for name, column in named.items()}
    if "key" in columns:
        columns["key"] = _as_key(frame, named["key"], sink)
    if sink.topic is not None:
        columns["topic"] = sf.lit(sink.topic)
    columns["value"] = sf.to_json(sf.struct(*map(_column, rest)), dict(sink.json_options))
    try:
        return frame.select(*(columns[name].alias(name) for name in _COLUMNS if name in columns))
    except PySparkException as error:
        raise JobError(f"sink.value: {first_line(error)}") from error


def _as_key(frame: DataFrame, name: str, sink: Sink) -> Column:
    """Convert a key: text as it is, numbers and times to text, structs to JSON."""
    kind = frame.schema[name].dataType
    if isinstance(kind, StringType | BinaryType):
        return _column(name)
    if isinstance(kind, StructType | ArrayType | MapType | VariantType):
        return sf.to_json(_column(name), dict(sink.json_options))
    return _column(name).cast("string")


def _column(name: str) -> Column:
    """Return the column of this name, which may contain any character."""
    return sf.col(f"`{name.replace('`', '``')}`")
