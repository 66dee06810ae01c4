"""`odradek pipeline stats`: counts the records of topics by hour, and shows the lag of groups."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .options import (
    Conf,
    DryRun,
    LogDirs,
    Master,
    Place,
    Processes,
    Topic,
    Topics,
    log_directories,
    place_of,
)

if TYPE_CHECKING:
    from odradek.pipeline.jobs.stats.job import StatsReport, StatsSettings


def command(  # noqa: PLR0913 - one parameter per option
    *,
    path: LogDirs,
    topic: Topic = None,
    topics: Topics = None,
    hours: Annotated[
        bool, typer.Option("--hours", help="Also print a line for each hour.")
    ] = False,
    lag: Annotated[
        bool, typer.Option("--lag/--no-lag", help="Whether to show the lag of consumer groups.")
    ] = True,
    verify_crc: Annotated[
        bool, typer.Option("--verify-crc/--no-verify-crc", help="Check each batch's checksum.")
    ] = True,
    json: Annotated[
        bool, typer.Option("--json", help="Print everything as one JSON object.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            dir_okay=False,
            help="Also write a page with charts into one file.",
        ),
    ] = None,
    processes: Processes = None,
    master: Master = None,
    conf: Conf = None,
    dry_run: DryRun = False,
) -> None:
    """Count records, bytes, sizes, keys and codecs by topic and hour; show the lag of groups.

    Reads the files of a node, whose broker may be running. The error of size quantiles is at most
    3 %, that of the number of distinct keys about 2 %. The exit code is 1 if a file could not be
    read.
    """
    directories, place = log_directories(path), place_of(processes, master, conf)
    if html is not None and not html.absolute().parent.is_dir():
        raise typer.BadParameter(f"{html.parent} is not a directory", param_hint="--html")
    from .running import run_job

    def job() -> int:
        from odradek.pipeline.jobs.stats.job import StatsSettings
        from odradek.pipeline.jobs.topic_choice import TopicChoice

        settings = StatsSettings(
            log_directories=directories,
            topics=TopicChoice(names=topic or (), pattern=topics),
            with_lag=lag,
            verify_crc=verify_crc,
        )
        if dry_run:
            return _planned(settings, as_json=json)
        if html is not None:
            from .stats_page import page  # a missing library is reported before the counting
        report, seconds = _run(settings, place)
        if html is not None:
            read = ", ".join(map(str, directories))
            html.write_text(page(report, read, datetime.now(UTC)), encoding="utf-8")
            typer.secho(f"written: {html}", dim=True, err=True)
        return _show(report, seconds, as_json=json, hours=hours)

    run_job(job)


def _planned(settings: "StatsSettings", *, as_json: bool) -> int:
    from odradek.pipeline.jobs.stats.job import plan_stats

    from .stats_report import show_plan

    return show_plan(plan_stats(settings), as_json=as_json)


def _run(settings: "StatsSettings", place: Place) -> "tuple[StatsReport, float]":
    from odradek.pipeline.jobs.progress import progress_bar
    from odradek.pipeline.jobs.stats.job import run_stats

    from .running import runner_for

    started = time.monotonic()
    with runner_for("stats", place) as runner, progress_bar("tasks") as bar:
        report = run_stats(runner, settings, bar)
    return report, time.monotonic() - started


def _show(report: "StatsReport", seconds: float, *, as_json: bool, hours: bool) -> int:
    from .stats_json import show_json
    from .stats_report import show_report

    if as_json:
        return show_json(report)
    return show_report(report, f"counted in {seconds:.1f} s", hours=hours)
