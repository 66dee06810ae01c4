"""`odradek pipeline etl`: runs a job until it has caught up, is told to stop, or has failed."""

import json
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j tells no types
from pyspark.errors import PySparkException

from odradek.pipeline.jobs.job_error import JobError

from .checkpoint_note import check_checkpoint, claim_checkpoint
from .client_options import checked_options
from .delivery import delivery_seen
from .failures import readable
from .job_file import EtlJob
from .plan import EtlPlan, plan_job
from .progress import EtlBatch, EtlSummary, batches_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

GRACE_S = 10.0
_LOOK_EVERY_S = 0.2
_LOOK_FOR_END_EVERY_S = 0.02  # the next batch may begin at once
_SETTINGS = {
    # What is passed over by a filter that is always false is not read (the package's docstring).
    "spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan": "true",
    # A kill leaves half of a checkpoint's first file, which Spark takes for another query's; whose
    # a checkpoint is has been looked at before (checkpoint_note.py).
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}


@dataclass(frozen=True, slots=True)
class Stop:
    """How a run is told to end: after the batch that is being written, or at once."""

    asked: Event = field(default_factory=Event)
    at_once: Event = field(default_factory=Event)


def nobody_hears(batch: EtlBatch) -> None:
    """Of a batch."""


def etl(
    spark: "SparkSession",
    job: EtlJob,
    *,
    once: bool = False,
    told: Callable[[EtlBatch], None] = nobody_hears,
    stop: Stop | None = None,
) -> EtlSummary:
    """Run it; with `once`, until all that is there now has been read. Raises JobError."""
    sink = checked_options(job).sink
    plan = plan_job(spark, job)
    goes_on = claim_checkpoint(spark, job.checkpoint, job.name, plan.reads)
    summary = EtlSummary(goes_on=goes_on)
    with _with_settings(spark):
        query = _started(job, plan, once=once)
        try:
            _watch(query, job, summary, told, stop or Stop())
        finally:
            _stop(query)
    summary.delivery = delivery_seen(sink, str(query.id), summary.written)
    return summary


def planned(spark: "SparkSession", job: EtlJob) -> tuple[EtlPlan, bool]:
    """What would run, and whether it goes on from a checkpoint. Raises JobError."""
    checked_options(job)
    plan = plan_job(spark, job)
    return plan, check_checkpoint(spark, job.checkpoint, job.name, plan.reads)


def _started(job: EtlJob, plan: EtlPlan, *, once: bool) -> "StreamingQuery":
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
        raise JobError(readable(error, job.checkpoint)) from error


@contextmanager
def _with_settings(spark: "SparkSession") -> "Iterator[None]":
    """While the query runs: some of them are looked at when it has started already."""
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
    query: "StreamingQuery",
    job: EtlJob,
    summary: EtlSummary,
    told: Callable[[EtlBatch], None],
    stop: Stop,
) -> None:
    seen = _Seen(query, summary, told)
    deadline: float | None = None
    try:
        wait_s = _LOOK_EVERY_S
        while not query.awaitTermination(wait_s):  # type: ignore[arg-type]  # floats do
            is_new = seen.look()
            if stop.asked.is_set():
                if deadline is None:
                    deadline = time.monotonic() + GRACE_S
                    is_new = False  # it ended before, and the next one may be under way
                summary.was_stopped, wait_s = True, _LOOK_FOR_END_EVERY_S
                is_between = is_new or not query.status["isTriggerActive"]
                if is_between or stop.at_once.is_set() or time.monotonic() > deadline:
                    query.stop()
    except (PySparkException, Py4JError) as error:
        raise JobError(readable(error, job.checkpoint)) from error
    seen.look()


class _Seen:
    """Adds up the batches of a query."""

    def __init__(
        self, query: "StreamingQuery", summary: EtlSummary, told: Callable[[EtlBatch], None]
    ) -> None:
        self._query, self._summary, self._told = query, summary, told
        self._last = -1
        self._newest: str | None = None

    def look(self) -> bool:
        """Whether there is a new one."""
        newest = self._query.lastProgress
        if newest is None or newest.timestamp == self._newest:
            return False
        self._newest = newest.timestamp
        reports: list[Any] = [json.loads(each.json) for each in self._query.recentProgress]
        batches = batches_of(reports, self._last)
        for batch in batches:
            self._last = batch.number
            self._summary.add(batch)
            self._told(batch)
        return bool(batches)


def _stop(query: "StreamingQuery") -> None:
    """If it runs still: nobody will look after it any more."""
    try:
        if query.isActive:
            query.stop()
    except (PySparkException, Py4JError):
        return  # the reason for leaving is the better message
