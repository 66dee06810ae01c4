"""`odradek pipeline archive`: writes closed segments to a Delta table, each record exactly once."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    Archive,
    Conf,
    DropValue,
    DryRun,
    IcebergCatalog,
    Isolation,
    LogDirs,
    Master,
    Place,
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
    place_of,
)

if TYPE_CHECKING:
    from odradek.pipeline.jobs.archive.job import ArchiveSettings


def command(  # noqa: PLR0913 - one parameter per option
    *,
    archive: Archive,
    path: LogDirs,
    topic: Topic = None,
    topics: Topics = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Archive the active segment, too.")
    ] = False,
    isolation: Isolation = "read_committed",
    schema: Schema = None,
    value_format: ValueFormat = None,
    registry: Registry = None,
    registry_conf: RegistryConf = None,
    value_subject: ValueSubject = "",
    drop_value: DropValue = False,
    compact: Annotated[
        bool,
        typer.Option(
            "--compact",
            help="Afterwards merge small files, and delete files that were replaced a week ago.",
        ),
    ] = False,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes",
            help="Take the table as it is if another writer has changed its records (DELETE, "
            "RESTORE, …). What is not there is not archived again.",
        ),
    ] = False,
    verify_crc: VerifyCrc = True,
    skip_unreadable: SkipUnreadable = False,
    storage: Storage = None,
    iceberg_catalog: IcebergCatalog = None,
    processes: Processes = None,
    master: Master = None,
    conf: Conf = None,
    dry_run: DryRun = False,
) -> None:
    """Archive topics in a Delta table, by topic and date.

    Archives the records of closed segments that are not in ARCHIVE yet. Each record is archived
    exactly once, however often the command is run or killed. A broker may be running.
    """
    values = ValueOptions(
        schema=schema,
        format=value_format,
        registry=registry,
        registry_conf=registry_conf,
        subject=value_subject,
        drop_value=drop_value,
    )
    directories, place = log_directories(path), place_of(processes, master, conf)
    from .running import run_job

    def job() -> int:
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
            until_end=until_end,
            compact=compact,
            accept_changes=accept_changes,
            iceberg_catalog=iceberg_catalog,
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
    summary.add_lost(plans)
    offsets: dict[str, int] = {}
    for plan in plans:
        wanted = sum(each.end - each.start for each in plan.ranges)
        offsets[plan.partition.topic] = offsets.get(plan.partition.topic, 0) + wanted
    return show_plan(summary, offsets)


def _run(settings: "ArchiveSettings", place: Place) -> int:
    from odradek.pipeline.jobs.archive.job import run_archive
    from odradek.pipeline.jobs.progress import progress_bar

    from .archive_report import show_summary
    from .running import runner_for

    started = time.monotonic()
    with runner_for("archive", place) as runner, progress_bar("tasks") as bar:
        summary = run_archive(runner, settings, bar)
    title = f"archived into {settings.archive} in {time.monotonic() - started:.1f} s"
    return show_summary(summary, title)
