"""What the SQL yields as records: the columns of the sink, always with `topic`.

A column that would not be written is an error: Spark's Kafka sink passes over it.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType, VariantType

from odradek.pipeline.jobs.job_error import JobError
from odradek.pipeline.option_values import OptionError
from odradek.pipeline.sink.rows import check_columns

from .failures import first_line
from .job_file import Sink

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_COLUMNS = ("topic", "key", "value", "headers", "partition", "timestamp")


def sink_rows(frame: "DataFrame", sink: Sink) -> "DataFrame":
    """Keys and values are bytes. Raises JobError."""
    twice = sorted({name for name in frame.columns if frame.columns.count(name) > 1})
    if twice:
        raise JobError(f"the SQL yields two columns {twice[0]}: give one another name (AS …)")
    shaped = _packed(frame, sink) if sink.value == "json" else _named(frame, sink)
    try:
        check_columns(shaped.schema, None, with_timestamp="timestamp" in shaped.columns)
    except OptionError as error:
        raise JobError(f"the columns for the sink: {error}") from None
    here = [name for name in ("key", "value") if name in shaped.columns]
    return shaped.withColumns({name: sf.col(name).cast("binary") for name in here})


def _named(frame: "DataFrame", sink: Sink) -> "DataFrame":
    """The SQL names them."""
    names = frame.columns
    if "value" not in names:
        raise JobError(
            f"the SQL yields no column 'value', but {', '.join(names)}: name one so, or set "
            "sink.value: json, which packs them"
        )
    others = [name for name in names if name not in _COLUMNS]
    if others:
        raise JobError(
            f"the SQL yields {', '.join(others)}, which would not be written: a record has "
            f"{', '.join(_COLUMNS)} (sink.value: json packs all columns into the value)"
        )
    if sink.topic is None and "topic" not in names:
        raise JobError("sink.topic is missing, and the SQL yields no column 'topic'")
    if sink.topic is not None and "topic" in names:
        raise JobError("the SQL yields a column 'topic', and sink.topic is set: only one can be")
    return frame if sink.topic is None else frame.withColumn("topic", sf.lit(sink.topic))


def _packed(frame: "DataFrame", sink: Sink) -> "DataFrame":
    """Those that the sink names become what it says; all others the value."""
    told = {
        "topic": sink.topic_column,
        "key": sink.key,
        "headers": sink.headers,
        "partition": sink.partition,
        "timestamp": sink.timestamp,
    }
    named = {name: column for name, column in told.items() if column is not None}
    for name, column in named.items():
        if column not in frame.columns:
            place = "topic_column" if name == "topic" else name
            raise JobError(
                f"sink.{place}: the SQL yields no column {column}, but {', '.join(frame.columns)}"
            )
    rest = [name for name in frame.columns if name not in named.values()]
    if not rest:
        raise JobError("sink.value: no column is left to be packed")
    columns = {name: _column(column) for name, column in named.items()}
    if "key" in columns:
        columns["key"] = _as_key(frame, named["key"], sink)
    if sink.topic is not None:
        columns["topic"] = sf.lit(sink.topic)
    columns["value"] = sf.to_json(sf.struct(*map(_column, rest)), dict(sink.json_options))
    try:
        return frame.select(*(column.alias(name) for name, column in _in_order(columns)))
    except PySparkException as error:
        raise JobError(f"sink.value: {first_line(error)}") from error


def _as_key(frame: "DataFrame", name: str, sink: Sink) -> "Column":
    """Text as it is; numbers and times as text, structs as JSON."""
    kind = frame.schema[name].dataType
    if isinstance(kind, StringType | BinaryType):
        return _column(name)
    if isinstance(kind, StructType | ArrayType | MapType | VariantType):
        return sf.to_json(_column(name), dict(sink.json_options))
    return _column(name).cast("string")


def _in_order(columns: "dict[str, Column]") -> "Iterable[tuple[str, Column]]":
    return ((name, columns[name]) for name in _COLUMNS if name in columns)


def _column(name: str) -> "Column":
    """Whatever characters it has."""
    return sf.col(f"`{name.replace('`', '``')}`")
