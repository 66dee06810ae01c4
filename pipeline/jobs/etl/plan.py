"""A job as one query, analysed as Spark will when it starts it, and not started."""

import re
from typing import TYPE_CHECKING, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from odradek.pipeline.jobs.job_error import JobError

from .failures import first_line
from .job_file import EtlJob
from .progress import SINK, SOURCE
from .sink_rows import sink_rows
from .source_view import SourceView, source_view
from .statements import last_of, views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_OBSERVED = re.compile(rf"CollectMetrics {re.escape(SOURCE)}(\w+)")


class EtlPlan(NamedTuple):
    """What would run.

    `rows` are what is written, dead letters among them; `yielded` is the schema of what the SQL
    yields; `reads` names the sources in the order in which the SQL reads them, one that it reads
    twice twice: a checkpoint keeps their offsets in that order.
    """

    rows: "DataFrame"
    yielded: "StructType"
    views: "dict[str, StructType]"
    reads: tuple[str, ...]

    @property
    def has_timestamp(self) -> bool:
        """Whether records are given their times."""
        return "timestamp" in self.rows.columns


def plan_job(spark: "SparkSession", job: EtlJob) -> EtlPlan:
    """Raises JobError."""
    found = {name: source_view(spark, job, name) for name in job.sources}
    with views(spark, {name: each.rows for name, each in found.items()}):
        try:
            selected = last_of(spark, job.statements)
        finally:
            for name in job.steps or ():
                spark.catalog.dropTempView(name)
    reads = _sources_read(selected, job)
    rows = sink_rows(selected, job.sink)
    rows = rows.observe(SINK, sf.count(sf.lit(1)).alias("records"))
    _check_output_mode(spark, rows, job)
    return EtlPlan(
        rows=_with_dead_letters(rows, found, job),
        yielded=selected.schema,
        views={name: each.rows.schema for name, each in found.items()},
        reads=reads,
    )


def _with_dead_letters(rows: "DataFrame", found: dict[str, SourceView], job: EtlJob) -> "DataFrame":
    for name in job.sources:
        rows = rows.unionByName(found[name].dead_letters, allowMissingColumns=True)
    return rows


def _sources_read(selected: "DataFrame", job: EtlJob) -> tuple[str, ...]:
    if not selected.isStreaming:
        raise JobError(f"the SQL reads none of the sources ({', '.join(job.sources)})")
    plan = selected._jdf.queryExecution().analyzed().toString()
    reads = tuple(_OBSERVED.findall(plan))
    unread = [name for name in job.sources if name not in reads]
    if unread:
        raise JobError(f"sources.{unread[0]}: the SQL does not read it")
    return reads


def _check_output_mode(spark: "SparkSession", rows: "DataFrame", job: EtlJob) -> None:
    """Spark's own check, which it makes when a query is started."""
    jvm = spark._jvm
    assert jvm is not None, "the session has ended"
    modes = jvm.org.apache.spark.sql.streaming.OutputMode
    checker = jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    mode = getattr(modes, job.sink.output_mode.capitalize())()
    try:
        checker.checkForStreaming(rows._jdf.queryExecution().analyzed(), mode)
    except PySparkException as error:
        raise JobError(f"sink.output_mode: {job.sink.output_mode}: {first_line(error)}") from error
