"""`odradek pipeline verify`: checks the segments of many partitions in parallel."""

import time
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
    from odradek.pipeline.jobs.verify.job import VerifySettings


def command(  # noqa: PLR0913 - one parameter per option
    *,
    path: LogDirs,
    topic: Topic = None,
    topics: Topics = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every record, not only headers and checksums.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print everything as one JSON object.")
    ] = False,
    processes: Processes = None,
    master: Master = None,
    conf: Conf = None,
    dry_run: DryRun = False,
) -> None:
    """Check logs: checksums, offsets, gaps, sequences, transactions, indexes, snapshots.

    Without --topic and --topics all logs are checked, also internal ones. Nothing is changed. A
    broker may be running, also Apache Kafka's. The exit code is 1 if there are problems.
    """
    directories, place = log_directories(path), place_of(processes, master, conf)
    from .running import run_job

    def job() -> int:
        from odradek.pipeline.jobs.topic_choice import TopicChoice
        from odradek.pipeline.jobs.verify.job import VerifySettings

        chosen = TopicChoice(names=topic or (), pattern=topics) if topic or topics else None
        settings = VerifySettings(log_directories=directories, topics=chosen, deep=deep)
        if dry_run:
            return _planned(settings, as_json=json)
        return _run(settings, place, as_json=json)

    run_job(job)


def _planned(settings: "VerifySettings", *, as_json: bool) -> int:
    from odradek.pipeline.jobs.verify.job import plan_verify

    from .verify_report import show_plan

    return show_plan(plan_verify(settings), as_json=as_json)


def _run(settings: "VerifySettings", place: Place, *, as_json: bool) -> int:
    from odradek.pipeline.jobs.verify.job import run_verify

    from .progress import progress_bar
    from .running import runner_for
    from .verify_report import show_json, show_report

    started = time.monotonic()
    with runner_for("verify", place) as runner, progress_bar("segments") as bar:
        report = run_verify(runner, settings, bar)
    if as_json:
        return show_json(report)
    return show_report(report, f"verified in {time.monotonic() - started:.1f} s")
