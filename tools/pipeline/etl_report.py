"""Prints the plan, progress and result of `odradek pipeline etl`.

Options and settings are not printed, because they may contain passwords.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.etl.job_file import CheckedOptions, written_topics
from odradek.pipeline.jobs.etl.job_model import EtlJob
from odradek.pipeline.jobs.etl.spark_reports import EtlBatch, EtlSummary
from odradek.pipeline.option_values import OptionError
from odradek.pipeline.sink.write_options import Delivery
from odradek.tools.tables import number, print_each, show_table

from .running import EXIT_DONE, EXIT_INTERRUPTED

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from odradek.pipeline.jobs.etl.plan import EtlPlan

_LINE_INTERVAL_S = 10.0
_GUARANTEES = {
    Delivery.EXACTLY_ONCE: "exactly once",
    Delivery.AT_LEAST_ONCE: "at least once: a batch that is interrupted is written again",
}
Topics = dict[str, dict[str, int]]


def topics_of(checked: CheckedOptions) -> Topics:
    """For each source: its topics, and how many partitions of each it reads. Raises JobError."""
    from odradek.pipeline.source.batch_reader import make_origin
    from odradek.pipeline.source.resolving import selected_partitions

    found: Topics = {}
    for name, options in checked.sources.items():
        try:
            partitions = selected_partitions(make_origin(options), options)
        except (OptionError, OSError, RuntimeError) as error:
            raise JobError(f"sources.{name}: {error}") from error
        topics: dict[str, int] = {}
        for each in partitions:
            topics[each.topic] = topics.get(each.topic, 0) + 1
        found[name] = topics
    return found


def show_plan(
    job: EtlJob, plan: "EtlPlan", topics: Topics, delivery: Delivery, *, is_resumed: bool
) -> int:
    """Print what would run; returns the exit code."""
    rows = [
        (name, topic, str(partitions))
        for name, of_source in topics.items()
        for topic, partitions in of_source.items()
    ]
    rows += [(name, "(Spark's connector)", "") for name in job.sources if name not in topics] + [
        (name, "(none yet)", "") for name, of_source in topics.items() if not of_source
    ]
    typer.echo(f"{job.name}: would run (nothing was started)")
    show_table("reads", ("source", "topic", "partitions"), rows)
    for name, schema in plan.views.items():
        typer.echo(f"view {name} ({_source_text(job, name)})")
        _show_schema(schema)
    typer.echo("the SQL yields")
    _show_schema(plan.yielded)
    for place, topic in written_topics(job):
        typer.echo(f"{place}: {topic}")
    typer.echo(f"writes: {', '.join(plan.rows.columns)}; output mode {job.sink.output_mode}")
    typer.echo(f"delivery: {_GUARANTEES[delivery]}")
    typer.echo(f"trigger: {job.trigger.every or 'available-now'}")
    state = "continues from it" if is_resumed else "new: sources begin at their startingOffsets"
    typer.echo(f"checkpoint: {job.checkpoint} ({state})")
    return EXIT_DONE


def _source_text(job: EtlJob, name: str) -> str:
    source = job.sources[name]
    target = f" to {source.dead_letter_topic}" if source.on_bad_record == "dead-letter" else ""
    kinds = f"key {source.key.kind}, value {source.value.kind}"
    return f"{kinds}, bad records: {source.on_bad_record}{target}"


def _show_schema(schema: "StructType") -> None:
    for field in schema.fields:
        typer.echo(f"  {field.name} {field.dataType.simpleString()}")


@contextmanager
def show_progress() -> Iterator[Callable[[EtlBatch], None]]:
    """One line that is updated, on a terminal; else a line from time to time."""
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("waiting for the first batch") as status:
            yield lambda batch: status.update(progress_line(batch))
        return
    yield _ProgressLines(time.monotonic).add


class _ProgressLines:
    """Prints the first batch with records, and then at most one every ten seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next = 0.0

    def add(self, batch: EtlBatch) -> None:
        """Print the batch, if it has records and the interval has passed."""
        if self._clock() >= self._next and (batch.records or batch.written):
            self._next = self._clock() + _LINE_INTERVAL_S
            typer.echo(progress_line(batch), err=True)


def progress_line(batch: EtlBatch) -> str:
    """`batch 17: 5,000 records in (2,500/s), 120 out (60/s), 3 bad, 40 behind`."""
    seconds = max(batch.seconds, 0.001)
    parts = [
        f"{batch.records:,} records in ({batch.records / seconds:,.0f}/s)",
        f"{batch.written:,} out ({batch.written / seconds:,.0f}/s)",
    ]
    if batch.bad:
        parts.append(f"{batch.bad:,} bad")
    if batch.lag is not None:
        parts.append(f"{batch.lag:,} behind" if batch.lag else "caught up")
    return f"batch {batch.number}: {', '.join(parts)}"


def show_summary(job: EtlJob, summary: EtlSummary, seconds: float, *, until_caught_up: bool) -> int:
    """Print counts, the delivery guarantee and the bad records; returns the exit code."""
    rows = [
        (name, f"{count.records:,}", number(count.bad))
        for name, count in sorted(summary.sources.items())
    ]
    ended = "stopped" if summary.was_stopped else "done"
    batches = f"{summary.batches} batch" + ("" if summary.batches == 1 else "es")
    title = f"{job.name}: {ended} after {seconds:.1f} s, {batches}"
    show_table(title, ("source", "records", "bad"), rows)
    typer.echo(f"written: {summary.written:,} records, {_GUARANTEES[summary.delivery]}")
    for name, count in sorted(summary.sources.items()):
        if count.bad:
            print_each("bad records", [_bad_records_text(job, name, count.bad)])
            print_each("for example", [count.example] if count.example else [])
    return EXIT_INTERRUPTED if summary.was_stopped and until_caught_up else EXIT_DONE


def _bad_records_text(job: EtlJob, name: str, bad: int) -> str:
    source = job.sources[name]
    if source.on_bad_record == "dead-letter":
        return f"{bad:,} of {name} were sent to {source.dead_letter_topic}"
    return f"{bad:,} of {name} were dropped"
