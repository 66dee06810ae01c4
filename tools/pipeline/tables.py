"""`odradek pipeline tables`: keeps a Delta table a few seconds behind a broker."""

import signal
import threading
import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from odradek.tools.client.failure import CommandError
from odradek.tools.client.servers import parse_server

from .options import (
    Archive,
    DropValue,
    IcebergCatalog,
    Isolation,
    LogDirs,
    Processes,
    Registry,
    RegistryConf,
    Schema,
    SkipUnreadable,
    Storage,
    Topic,
    Topics,
    ValueFormat,
    ValueOptions,
    ValueSubject,
    VerifyCrc,
    archive_location,
    archive_settings,
    log_directories,
)

if TYPE_CHECKING:
    from odradek.pipeline.jobs.archive.job import ArchiveSettings
    from odradek.pipeline.jobs.following import Intervals, Round

    from .tables_metrics import TablesMetrics


def command(  # noqa: PLR0913 - one parameter per option
    *,
    archive: Archive,
    path: LogDirs,
    topic: Topic = None,
    topics: Topics = None,
    every: Annotated[
        float,
        typer.Option("--every", metavar="SECONDS", min=0.1, help="How often to archive."),
    ] = 5.0,
    merge_every: Annotated[
        float,
        typer.Option(
            "--merge-every",
            metavar="SECONDS",
            min=1,
            help="How often to merge small files and delete those that were replaced a week ago.",
        ),
    ] = 600.0,
    isolation: Isolation = "read_committed",
    schema: Schema = None,
    value_format: ValueFormat = None,
    registry: Registry = None,
    registry_conf: RegistryConf = None,
    value_subject: ValueSubject = "",
    drop_value: DropValue = False,
    verify_crc: VerifyCrc = True,
    skip_unreadable: SkipUnreadable = False,
    metrics_listener: Annotated[
        str | None,
        typer.Option(
            "--metrics-listener",
            metavar="HOST:PORT",
            help="Serve /metrics there: the lag, open problems and counts, as Prometheus reads "
            "them. There is no authentication.",
        ),
    ] = None,
    storage: Storage = None,
    iceberg_catalog: IcebergCatalog = None,
    processes: Processes = None,
) -> None:
    """Keep a Delta table a few seconds behind a broker.

    Archives what is written to topics, as `archive --until-end` does, again and again until it is
    stopped (Control-C or SIGTERM). Each record is in the table exactly once, however often the
    command is killed and started again. An error, like a store that cannot be reached, is printed
    and tried again. The exit code is 1 if there are problems when it is stopped, and 3 if records
    were lost or skipped.
    """
    values = ValueOptions(
        schema=schema,
        format=value_format,
        registry=registry,
        registry_conf=registry_conf,
        subject=value_subject,
        drop_value=drop_value,
    )
    listener = None if metrics_listener is None else _address(metrics_listener)
    directories = log_directories(path)
    from .running import run_job

    def job() -> int:
        from odradek.pipeline.jobs.following import Intervals

        settings = replace(
            archive_settings(
                archive_location(archive, storage),
                directories,
                values,
                topic=topic,
                topics=topics,
                isolation=isolation,
                verify_crc=verify_crc,
                skip_unreadable=skip_unreadable,
            ),
            iceberg_catalog=iceberg_catalog,
        )
        intervals = Intervals(round_s=every, merge_s=merge_every)
        return _follow(settings, processes, intervals, listener)

    run_job(job)


def _address(text: str) -> tuple[str, int]:
    """Parse HOST:PORT. Raises BadParameter."""
    try:
        _, host, port = parse_server(text)
    except CommandError as error:
        raise typer.BadParameter(str(error), param_hint="--metrics-listener") from None
    return host, port


def _follow(
    settings: "ArchiveSettings",
    processes: int | None,
    intervals: "Intervals",
    listener: tuple[str, int] | None,
) -> int:
    from odradek.pipeline.jobs.following import FollowingArchive
    from odradek.pipeline.jobs.process_tasks import ProcessTasks

    from .running import EXIT_DONE, EXIT_LOST, EXIT_PROBLEMS
    from .tables_metrics import TablesMetrics, listening

    metrics = TablesMetrics()
    report = _Report(metrics)
    with (
        nullcontext() if listener is None else listening(listener, metrics),
        ProcessTasks(processes) as runner,
        ProcessTasks(1) as merging_runner,
    ):
        following = FollowingArchive(
            runner, merging_runner, settings, report.show, intervals=intervals
        )
        typer.echo(f"archiving into {settings.archive}")
        following.run(_stopped_by_signals())
    typer.echo(f"stopped; {report.records:,} records were archived")
    if report.has_problems:
        return EXIT_PROBLEMS
    return EXIT_LOST if report.lost else EXIT_DONE


def _stopped_by_signals() -> threading.Event:
    """Return what SIGINT and SIGTERM set. The second SIGINT interrupts."""
    stop = threading.Event()

    def handle(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    return stop


class _Report:
    """Prints a line for each round that has archived something, and problems when they are new."""

    def __init__(self, metrics: "TablesMetrics") -> None:
        self._metrics = metrics
        self.records = 0
        self.lost = False
        self.has_problems = False
        self._told: set[str] = set()

    def show(self, done: "Round") -> None:
        """Print what a round has done."""
        from odradek.tools.tables import size

        summary, total = done.summary, done.summary.total()
        self.records += total.records + total.dead_letters
        self.lost = self.lost or bool(summary.lost or summary.skipped)
        problems = [*summary.problems, *filter(None, [done.error])]
        self.has_problems = bool(problems)
        self._metrics.add(done, problems)
        lines = [f"problem: {each}" for each in problems]
        lines += [f"note: {each}" for each in summary.notes]
        for each in lines:
            if each not in self._told:
                _say(each)
        self._told = set(lines)
        for kind in ("repaired", "lost", "skipped"):
            for each in getattr(summary, kind):
                _say(f"{kind}: {each}")
        if total.files:
            _say(
                f"{total.records + total.dead_letters:,} records, {size(total.file_bytes)} in "
                f"{total.files:,} files; the table was {done.seconds:.1f} s behind"
            )


def _say(text: str) -> None:
    typer.echo(f"{time.strftime('%H:%M:%S')}  {text}")
