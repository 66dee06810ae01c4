"""`odradek pipeline etl`: runs a streaming job, topic -> SQL -> topic, defined in a YAML file."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Conf, SparkMaster, settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipeline.jobs.etl.job import Stop
    from odradek.pipeline.jobs.etl.job_model import EtlJob

# Errors are printed as one line; with --conf spark.log.level=WARN Spark logs stack traces, too.
# The redaction is for passwords in client settings: those are options of a query, and Spark prints
# options with the query's plan.
_QUIET = {
    "spark.log.level": "OFF",
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|[.]key|credential",
}


def _show_example(is_set: bool) -> None:
    if is_set:
        from importlib.resources import files

        text = files("odradek.pipeline.jobs.etl").joinpath("example.yaml").read_text("utf-8")
        typer.echo(text, nl=False)
        raise typer.Exit


def command(
    *,
    file: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The job: see --example.")],
    once: Annotated[
        bool,
        typer.Option("--once", help="Read all records that exist now, then end."),
    ] = False,
    master: SparkMaster = None,
    conf: Conf = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check the job, look up its topics, and print what would run. Nothing is written.",
        ),
    ] = False,
    example: Annotated[  # noqa: ARG001 - its callback ends the command
        bool,
        typer.Option(
            "--example", is_eager=True, callback=_show_example, help="Print a job file, and end."
        ),
    ] = False,
) -> None:
    """Run a streaming job: read topics as views, query them with SQL, write the rows to a topic.

    Ctrl-C and SIGTERM end the job after the current batch. The next run continues from the
    checkpoint, however this one ended. With --conf spark.log.level=WARN Spark logs more.
    """
    given = settings_of(conf)
    from .running import run_job

    def job() -> int:
        from odradek.pipeline.jobs.etl.job_file import read_job

        read = read_job(file)
        settings = {**_QUIET, **read.spark, **given}
        chosen = master or settings.get("spark.master")
        return _dry_run(read, chosen, settings) if dry_run else _run(read, chosen, settings, once)

    run_job(job)


def _dry_run(job: "EtlJob", master: str | None, settings: dict[str, str]) -> int:
    from odradek.pipeline.jobs.etl.job_file import check_options

    from .etl_report import show_plan, topics_of

    checked = check_options(job)
    topics = topics_of(checked)
    with _session(job, master, settings) as spark:
        from odradek.pipeline.jobs.etl.job import dry_run

        plan, is_resumed = dry_run(spark, job)
        return show_plan(job, plan, topics, checked.sink.delivery, is_resumed=is_resumed)


def _run(job: "EtlJob", master: str | None, settings: dict[str, str], once: bool) -> int:
    from odradek.pipeline.jobs.etl.job_file import check_options

    check_options(job)  # reports wrong options before Spark is started
    with _session(job, master, settings) as spark:
        from odradek.pipeline.jobs.etl.job import etl

        from .etl_report import show_progress, show_summary

        started = time.monotonic()
        with _stopped_by_signals() as stop, show_progress() as on_batch:
            summary = etl(spark, job, once=once, on_batch=on_batch, stop=stop)
        until_caught_up = once or job.trigger.every is None
        seconds = time.monotonic() - started
        return show_summary(job, summary, seconds, until_caught_up=until_caught_up)


@contextmanager
def _session(
    job: "EtlJob", master: str | None, settings: dict[str, str]
) -> "Iterator[SparkSession]":
    from .running import spark_session

    spark = spark_session(f"etl {job.name}", master, settings)
    # pyspark logs each error that it raises, as JSON.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _stopped_by_signals() -> "Iterator[Stop]":
    """The first SIGINT or SIGTERM ends the job after the batch, the second one at once."""
    import signal

    from odradek.pipeline.jobs.etl.job import Stop

    stop = Stop()

    def ask(*_: object) -> None:
        if stop.after_batch.is_set():
            stop.at_once.set()
        stop.after_batch.set()

    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
