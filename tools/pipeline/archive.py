"""`odradek pipeline archive`: writes closed segments to a Delta table, each record exactly once."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from .options import (
    Conf,
    DryRun,
    LogDirs,
    Master,
    Place,
    Processes,
    Storage,
    Topic,
    Topics,
    archive_location,
    log_directories,
    place_of,
)

if TYPE_CHECKING:
    from odradek.pipeline.jobs.archive.job import ArchiveSettings


def command(  # noqa: PLR0913 - one parameter per option
    *,
    archive: Annotated[
        str,
        typer.Argument(metavar="ARCHIVE", help="The directory or URL (s3://…) of the table."),
    ],
    path: LogDirs,
    topic: Topic = None,
    topics: Topics = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Archive the active segment, too.")
    ] = False,
    isolation: Annotated[
        Literal["read_committed", "read_uncommitted"],
        typer.Option(
            "--isolation",
            help="Whether to archive records of open and aborted transactions (read_uncommitted).",
        ),
    ] = "read_committed",
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help="Values are JSON objects: write their fields as columns, as this file describes. "
            "Records that do not match have the reason in the column error.",
        ),
    ] = None,
    drop_value: Annotated[
        bool, typer.Option("--drop-value", help="With --schema: do not keep the original value.")
    ] = False,
    compact: Annotated[
        bool,
        typer.Option(
            "--compact",
            help="Afterwards merge small files, and delete files that were replaced a week ago.",
        ),
    ] = False,
    verify_crc: Annotated[
        bool, typer.Option("--verify-crc/--no-verify-crc", help="Check each batch's checksum.")
    ] = True,
    storage: Storage = None,
    processes: Processes = None,
    master: Master = None,
    conf: Conf = None,
    dry_run: DryRun = False,
) -> None:
    """Archive topics in a Delta table, by topic and date.

    Archives the records of closed segments that are not in ARCHIVE yet. Each record is archived
    exactly once, however often the command is run or killed. A broker may be running.
    """
    if drop_value and schema is None:
        raise typer.BadParameter("needs --schema", param_hint="--drop-value")
    directories, place = log_directories(path), place_of(processes, master, conf)
    from .running import run_job

    def job() -> int:
        from odradek.pipeline.jobs.archive.job import ArchiveSettings
        from odradek.pipeline.jobs.archive.json_schema import read_json_schema
        from odradek.pipeline.jobs.topic_choice import TopicChoice

        settings = ArchiveSettings(
            log_directories=directories,
            archive=archive_location(archive, storage),
            topics=TopicChoice(names=topic or (), pattern=topics),
            until_end=until_end,
            committed_only=isolation == "read_committed",
            values=None if schema is None else read_json_schema(schema),
            keep_value=not drop_value,
            compact=compact,
            verify_crc=verify_crc,
        )
        return _planned(settings) if dry_run else _run(settings, place)

    run_job(job)


def _planned(settings: "ArchiveSettings") -> int:
    from odradek.pipeline.jobs.archive.job import plan_archive
    from odradek.pipeline.jobs.archive.summary import ArchiveSummary

    from .archive_report import show_plan

    plans = plan_archive(settings)
    summary = ArchiveSummary()
    summary.add_plans(plans)
    offsets: dict[str, int] = {}
    for plan in plans:
        wanted = sum(each.end - each.start for each in plan.ranges)
        offsets[plan.partition.topic] = offsets.get(plan.partition.topic, 0) + wanted
    return show_plan(summary, offsets)


def _run(settings: "ArchiveSettings", place: Place) -> int:
    from odradek.pipeline.jobs.archive.job import run_archive

    from .archive_report import show_summary
    from .progress import progress_bar
    from .running import runner_for

    started = time.monotonic()
    with runner_for("archive", place) as runner, progress_bar("tasks") as bar:
        summary = run_archive(runner, settings, bar)
    title = f"archived into {settings.archive} in {time.monotonic() - started:.1f} s"
    return show_summary(summary, title)
