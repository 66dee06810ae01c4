"""Implements `odradek pipeline etl`: runs a job until it has caught up, is stopped, or fails."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from odradek.pipeline.jobs import JobError

from .checkpoint_owner import check_checkpoint, claim_checkpoint
from .job_file import check_options
from .job_model import EtlJob
from .plan import EtlPlan, plan_job
from .spark_reports import EtlBatch, EtlSummary, batches_of, explain

GRACE_S = 10.0
_POLL_EVERY_S = 0.2
_POLL_FOR_END_EVERY_S = 0.02  # short, because the next batch may begin at once
_SETTINGS = {
    # A branch with a filter that is always false is not read (see the package's docstring).
    "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan": "true",
    # After a kill, a checkpoint may contain half of its first file, and Spark would refuse it as
    # another query's. checkpoint_owner.py has checked the owner already.
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    # Until Spark 4.1, AvailableNow would read Python's sources in one batch, and not close windows.
    "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
}


@dataclass(frozen=True, slots=True)
class Stop:
    """Requests to end a run: after the current batch, or at once."""

    after_batch: Event = field(default_factory=Event)
    at_once: Event = field(default_factory=Event)


def ignore_batch(batch: EtlBatch) -> None:
    """Report nothing."""


def etl(
    spark: SparkSession,
    job: EtlJob,
    *,
    once: bool = False,
    on_batch: Callable[[EtlBatch], None] = ignore_batch,
    stop: Stop | None = None,
) -> EtlSummary:
    """Run the job; with `once`, until all existing records are read. Raises JobError."""
    sink = check_options(job).sink
    plan = plan_job(spark, job)
    is_resumed = claim_checkpoint(spark, job.checkpoint, job.name, plan.reads)
    summary = EtlSummary(delivery=sink.delivery, is_resumed=is_resumed)
    with _with_settings(spark):
        query = _start(job, plan, once=once)
        try:
            _watch(query, job, summary, on_batch, stop or Stop())
        finally:
            _stop(query)
    return summary


def dry_run(spark: SparkSession, job: EtlJob) -> tuple[EtlPlan, bool]:
    """Return what would run, and whether it resumes from a checkpoint. Raises JobError."""
    check_options(job)
    plan = plan_job(spark, job)
    return plan, check_checkpoint(spark, job.checkpoint, job.name, plan.reads)


def _start(job: EtlJob, plan: EtlPlan, *, once: bool) -> StreamingQuery:
    options = job.sink_options
    if plan.has_timestamp:
        options["includeTimestamp"] = "true"
    writer = (
        plan.rows.writeStream.format("odradek")
        .queryName(job.name)
        .options(**options)
        .option("checkpointLocation", job.checkpoint)
        .outputMode(job.sink.output_mode)
    )
    every = None if once else job.trigger.every
    writer = (
        writer.trigger(availableNow=True) if every is None else writer.trigger(processingTime=every)
    )
    try:
        return writer.start()
    except (PySparkException, Py4JError) as error:
        raise JobError(explain(error, job.checkpoint)) from error


@contextmanager
def _with_settings(spark: SparkSession) -> Iterator[None]:
    """Set them until the query ends: Spark reads some of them after the start."""
    before = {name: spark.conf.get(name, None) for name in _SETTINGS}
    for name, value in _SETTINGS.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _watch(
    query: StreamingQuery,
    job: EtlJob,
    summary: EtlSummary,
    on_batch: Callable[[EtlBatch], None],
    stop: Stop,
) -> None:
    reports = _BatchReports(query, summary, on_batch)
    deadline: float | None = None
    try:
        wait_s = _POLL_EVERY_S
        while not query.awaitTermination(wait_s):  # type: ignore[arg-type]  # accepts floats
            is_new = reports.poll()
            if stop.after_batch.is_set():
                if deadline is None:
                    deadline = time.monotonic() + GRACE_S
                    is_new = False  # that batch ended earlier, and the next may have begun
                summary.was_stopped, wait_s = True, _POLL_FOR_END_EVERY_S
                is_between = is_new or not query.status["isTriggerActive"]
                if is_between or stop.at_once.is_set() or time.monotonic() > deadline:
                    query.stop()
    except (PySparkException, Py4JError) as error:
        raise JobError(explain(error, job.checkpoint)) from error
    reports.poll()


class _BatchReports:
    """Adds the batches of a query to the summary."""

    def __init__(
        self, query: StreamingQuery, summary: EtlSummary, on_batch: Callable[[EtlBatch], None]
    ) -> None:
        self._query, self._summary, self._on_batch = query, summary, on_batch
        self._last = -1
        self._newest: str | None = None

    def poll(self) -> bool:
        """Return whether there is a new batch."""
        newest = self._query.lastProgress
        if newest is None or newest.timestamp == self._newest:
            return False
        self._newest = newest.timestamp
        reports: list[Any] = [json.loads(each.json) for each in self._query.recentProgress]
        batches = batches_of(reports, self._last)
        for batch in batches:
            self._last = batch.number
            self._summary.add(batch)
            self._on_batch(batch)
        return bool(batches)


def _stop(query: StreamingQuery) -> None:
    """Stop the query if it is still running, because nothing will watch it any more."""
    try:
        if query.isActive:
            query.stop()
    except (PySparkException, Py4JError):
        return  # the error that ended the run is the better message
