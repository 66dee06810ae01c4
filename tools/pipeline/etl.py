"""`odradek pipeline etl`: a structured-streaming job topic -> SQL -> topic from a YAML file."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import Conf, Master, settings_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from odradek.pipeline.jobs.etl.job import Stop
    from odradek.pipeline.jobs.etl.job_file import EtlJob

# What fails is said in a line; stack traces by --conf spark.log.level=WARN. Client settings
# are options of a query, which Spark prints with its plan: they may hold passwords.
_QUIET = {
    "spark.log.level": "OFF",
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|[.]key|credential",
}


def _show_example(wanted: bool) -> None:
    if wanted:
        from importlib.resources import files

        text = files("odradek.pipeline.jobs.etl").joinpath("example.yaml").read_text("utf-8")
        typer.echo(text, nl=False)
        raise typer.Exit


def command(
    *,
    file: Annotated[Path, typer.Argument(metavar="JOB.yaml", help="The job: see --example.")],
    once: Annotated[
        bool,
        typer.Option("--once", help="Until all that is there now has been read, then end."),
    ] = False,
    master: Master = None,
    conf: Conf = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check all of it, ask for the topics, and say what would run."
        ),
    ] = False,
    example: Annotated[  # noqa: ARG001 # it ends the command
        bool,
        typer.Option(
            "--example", is_eager=True, callback=_show_example, help="Show a job file, and end."
        ),
    ] = False,
) -> None:
    """Run a streaming job: topics into views, SQL over them, its rows into a topic.

    Ended by Ctrl-C or SIGTERM it finishes the batch it is writing. However it has ended, it goes on
    from its checkpoint. With --conf spark.log.level=WARN Spark says more.
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
    from odradek.pipeline.jobs.etl.client_options import checked_options

    from .etl_report import show_plan, topics_of

    checked = checked_options(job)
    topics = topics_of(checked)
    with _session(job, master, settings) as spark:
        from odradek.pipeline.jobs.etl.job import planned

        plan, goes_on = planned(spark, job)
        return show_plan(job, plan, topics, checked.sink.delivery, goes_on=goes_on)


def _run(job: "EtlJob", master: str | None, settings: dict[str, str], once: bool) -> int:
    from odradek.pipeline.jobs.etl.client_options import checked_options

    checked_options(job)  # what is wrong with them is said before Spark is started
    with _session(job, master, settings) as spark:
        from odradek.pipeline.jobs.etl.job import etl

        from .etl_report import show_progress, show_summary

        started = time.monotonic()
        with _stopped_by_signals() as stop, show_progress() as told:
            summary = etl(spark, job, once=once, told=told, stop=stop)
        until_caught_up = once or job.trigger.every is None
        seconds = time.monotonic() - started
        return show_summary(job, summary, seconds, until_caught_up=until_caught_up)


@contextmanager
def _session(
    job: "EtlJob", master: str | None, settings: dict[str, str]
) -> "Iterator[SparkSession]":
    from .running import spark_session

    spark = spark_session(f"etl {job.name}", master, settings)
    # pyspark logs each error that it raises, in JSON.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _stopped_by_signals() -> "Iterator[Stop]":
    """The first one asks for an end after the batch, the second one for one at once."""
    import signal

    from odradek.pipeline.jobs.etl.job import Stop

    stop = Stop()

    def ask(*_: object) -> None:
        if stop.asked.is_set():
            stop.at_once.set()
        stop.asked.set()

    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
