"""`odradek pipeline tables`: keeps a Delta table a few seconds behind a broker."""

import signal
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    Archive,
    DropValue,
    Isolation,
    LogDirs,
    Processes,
    Registry,
    RegistryConf,
    Schema,
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
    from odradek.pipeline.jobs.archive.following import Pace, Round
    from odradek.pipeline.jobs.archive.job import ArchiveSettings


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
    storage: Storage = None,
    processes: Processes = None,
) -> None:
    """Keep a Delta table a few seconds behind a broker.

    Archives what is written to topics, as `archive --until-end` does, again and again until it is
    stopped (Control-C or SIGTERM). Each record is in the table exactly once, however often the
    command is killed and started again. An error, like a store that cannot be reached, is printed
    and tried again.
    """
    values = ValueOptions(
        schema=schema,
        format=value_format,
        registry=registry,
        registry_conf=registry_conf,
        subject=value_subject,
        drop_value=drop_value,
    )
    directories = log_directories(path)
    from .running import run_job

    def job() -> int:
        from odradek.pipeline.jobs.archive.following import Pace

        settings = archive_settings(
            archive_location(archive, storage),
            directories,
            values,
            topic=topic,
            topics=topics,
            isolation=isolation,
            verify_crc=verify_crc,
        )
        return _follow(settings, processes, Pace(round_s=every, merge_s=merge_every))

    run_job(job)


def _follow(settings: "ArchiveSettings", processes: int | None, pace: "Pace") -> int:
    from odradek.pipeline.jobs.archive.following import FollowingArchive
    from odradek.pipeline.jobs.process_tasks import ProcessTasks

    from .running import EXIT_DONE, EXIT_LOST

    report = _Report()
    with ProcessTasks(processes) as runner, ProcessTasks(1) as merging_runner:
        following = FollowingArchive(runner, merging_runner, settings, report.show, pace=pace)
        typer.echo(f"archiving into {settings.archive}")
        following.run(_stopped_by_signals())
    typer.echo(f"stopped; {report.records:,} records were archived")
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

    def __init__(self) -> None:
        self.records = 0
        self.lost = False
        self._told: set[str] = set()

    def show(self, done: "Round") -> None:
        """Print what a round has done."""
        from odradek.tools.tables import size

        summary, total = done.summary, done.summary.total()
        self.records += total.records + total.dead_letters
        self.lost = self.lost or bool(summary.lost)
        lines = [f"problem: {each}" for each in (*summary.problems, *filter(None, [done.error]))]
        for each in lines:
            if each not in self._told:
                _say(each)
        self._told = set(lines)
        for kind, messages in (("repaired", summary.repaired), ("lost", summary.lost)):
            for each in messages:
                _say(f"{kind}: {each}")
        if total.files:
            _say(
                f"{total.records + total.dead_letters:,} records, {size(total.file_bytes)} in "
                f"{total.files:,} files; the table was {done.seconds:.1f} s behind"
            )


def _say(text: str) -> None:
    typer.echo(f"{time.strftime('%H:%M:%S')}  {text}")
