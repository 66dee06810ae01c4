"""The options of `odradek verify`. The code that does the work is imported on demand."""

from pathlib import Path
from typing import Annotated

import typer

from odradek.tools.pipeline.options import DryRun, Processes, Topic, log_directories


def verify(
    *,
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="The log directories of one node (log.dirs)."),
    ],
    topic: Topic = None,
    topics: Annotated[
        str | None,
        typer.Option(
            "--topics",
            metavar="PATTERN",
            help="Topics whose whole name matches this regular expression.  \\[default: all, also "
            "internal ones]",
        ),
    ] = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every record, not only those of internal logs.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print everything as one JSON object.")
    ] = False,
    processes: Processes = None,
    dry_run: DryRun = False,
) -> None:
    """Check data directories, and say what a broker's start would do about each problem.

    Nothing is changed or locked: a broker may be running, also Apache Kafka's. The exit code is 0
    if there are no problems, else 1.
    """
    paths = log_directories(directories, "DIR")
    from odradek.tools.pipeline.running import run_job

    def job() -> int:
        from odradek.pipeline.jobs.topic_choice import TopicChoice

        from .command import run

        chosen = None
        if topic or topics is not None:
            chosen = TopicChoice(names=topic or (), pattern=topics, internal=True)
        return run(paths, processes, chosen, deep=deep, as_json=json, dry_run=dry_run)

    run_job(job)
