"""`odradek pipeline stats`: counts the records of topics, and shows the lag of groups."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from .options import DryRun, LogDirs, Processes, Topic, Topics, log_directories

if TYPE_CHECKING:
    from odradek.pipeline.jobs.stats.job import StatsReport, StatsSettings


def command(
    *,
    path: LogDirs,
    topic: Topic = None,
    topics: Topics = None,
    lag: Annotated[
        bool, typer.Option("--lag/--no-lag", help="Whether to show the lag of consumer groups.")
    ] = True,
    verify_crc: Annotated[
        bool, typer.Option("--verify-crc/--no-verify-crc", help="Check each batch's checksum.")
    ] = True,
    json: Annotated[
        bool, typer.Option("--json", help="Print everything as one JSON object.")
    ] = False,
    processes: Processes = None,
    dry_run: DryRun = False,
) -> None:
    """Count the records, batches and bytes of topics by codec; show the lag of groups.

    Reads the files of a node, whose broker may be running. Records are counted as batches' headers
    say. The exit code is 1 if a file could not be read.
    """
    directories = log_directories(path)
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
        report, seconds = _run(settings, processes)
        return _show(report, seconds, as_json=json)

    run_job(job)


def _planned(settings: "StatsSettings", *, as_json: bool) -> int:
    from odradek.pipeline.jobs.stats.job import plan_stats

    from .stats_report import show_plan

    return show_plan(plan_stats(settings), as_json=as_json)


def _run(settings: "StatsSettings", processes: int | None) -> "tuple[StatsReport, float]":
    from odradek.pipeline.jobs.process_tasks import ProcessTasks
    from odradek.pipeline.jobs.progress import progress_bar
    from odradek.pipeline.jobs.stats.job import run_stats

    started = time.monotonic()
    with ProcessTasks(processes) as runner, progress_bar("tasks") as bar:
        report = run_stats(runner, settings, bar)
    return report, time.monotonic() - started


def _show(report: "StatsReport", seconds: float, *, as_json: bool) -> int:
    from .stats_json import show_json
    from .stats_report import show_report

    if as_json:
        return show_json(report)
    return show_report(report, f"counted in {seconds:.1f} s")
