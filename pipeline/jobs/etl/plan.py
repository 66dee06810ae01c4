"""Builds a job's query and has Spark analyse it, without starting it."""

import re
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from odradek.pipeline.jobs import JobError

from .batches import SINK, SOURCE
from .failures import first_line
from .job_file import EtlJob
from .sink_rows import sink_rows
from .source_view import SourceView, source_view
from .statements import run_statements, temporary_views

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
    """Build the query. Raises JobError."""
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
