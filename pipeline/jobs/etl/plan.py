"""Builds a job's query and has Spark analyse it, without starting it: views, SQL, records."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType, VariantType

from odradek.pipeline.jobs import JobError
from odradek.pipeline.option_values import OptionError
from odradek.pipeline.session import classic_context
from odradek.pipeline.sink.rows import check_columns

from .job_model import EtlJob, Sink
from .sources import SourceView, source_view
from .spark_reports import SINK, SOURCE, first_line

_COLUMNS = ("topic", "key", "value", "headers", "partition", "timestamp")
_OBSERVED = re.compile(rf"CollectMetrics {re.escape(SOURCE)}(\w+)")


class EtlPlan(NamedTuple):
    """The query that would run.

    `rows` are the records to write, including dead letters. `yielded` is the schema of the SQL's
    result. `reads` are the sources in the order in which the SQL reads them, and a source that it
    reads twice is listed twice. A checkpoint stores their offsets in that order.
    """

    rows: DataFrame
    yielded: StructType
    views: dict[str, StructType]
    reads: tuple[str, ...]

    @property
    def has_timestamp(self) -> bool:
        """Whether records get their timestamps from the SQL."""
        return "timestamp" in self.rows.columns


def plan_job(spark: SparkSession, job: EtlJob) -> EtlPlan:
    """Build the query. Raises JobError, NoSparkError."""
    classic_context(spark)
    sources = {name: source_view(spark, job, name) for name in job.sources}
    with temporary_views(spark, {name: each.rows for name, each in sources.items()}):
        try:
            selected = run_statements(spark, job.statements)
        finally:
            for name in job.steps or ():
                spark.catalog.dropTempView(name)
    reads = _sources_read(selected, job)
    rows = sink_rows(selected, job.sink)
    rows = rows.observe(SINK, sf.count(sf.lit(1)).alias("records"))
    _check_output_mode(spark, rows, job)
    return EtlPlan(
        rows=_with_dead_letters(rows, sources, job),
        yielded=selected.schema,
        views={name: each.rows.schema for name, each in sources.items()},
        reads=reads,
    )


def _with_dead_letters(rows: DataFrame, sources: dict[str, SourceView], job: EtlJob) -> DataFrame:
    for name in job.sources:
        rows = rows.unionByName(sources[name].dead_letters, allowMissingColumns=True)
    return rows


def _sources_read(selected: DataFrame, job: EtlJob) -> tuple[str, ...]:
    if not selected.isStreaming:
        raise JobError(f"the SQL reads none of the sources ({', '.join(job.sources)})")
    plan = selected._jdf.queryExecution().analyzed().toString()
    reads = tuple(_OBSERVED.findall(plan))
    unread = [name for name in job.sources if name not in reads]
    if unread:
        raise JobError(f"sources.{unread[0]}: the SQL does not read it")
    return reads


def _check_output_mode(spark: SparkSession, rows: DataFrame, job: EtlJob) -> None:
    """Run the check that Spark makes when a query is started."""
    jvm = spark._jvm
    assert jvm is not None, "the session has ended"
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    mode = getattr(modes, job.sink.output_mode.capitalize())()
    try:
        checker.checkForStreaming(rows._jdf.queryExecution().analyzed(), mode)
    except PySparkException as error:
        raise JobError(f"sink.output_mode: {job.sink.output_mode}: {first_line(error)}") from error


# --- the SQL


def parse_query(spark: SparkSession, place: str, sql: str) -> DataFrame:
    """Analyse a query. A command is refused, because it would run now. Raises JobError."""
    text = sql.strip().rstrip(";")
    try:
        # To Spark's parser for queries, a command is a syntax error.
        spark._jsparkSession.sessionState().sqlParser().parseQuery(text)
        return spark.sql(text)
    except PySparkException as error:
        raise JobError(f"{place}: {first_line(error)}") from error


def run_statements(spark: SparkSession, statements: Mapping[str, str]) -> DataFrame:
    """Return the result of the last statement; make views of those before. Raises JobError."""
    places = list(statements)
    for place in places[:-1]:
        name = place.rpartition(".")[2]
        parse_query(spark, place, statements[place]).createOrReplaceTempView(name)
    return parse_query(spark, places[-1], statements[places[-1]])


@contextmanager
def temporary_views(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """Register views for the SQL, until the end. A query that is analysed needs them no more."""
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    try:
        yield
    finally:
        for name in frames:
            spark.catalog.dropTempView(name)


# --- records for the sink


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
