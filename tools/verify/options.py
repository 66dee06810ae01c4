"""The options of `odradek verify`. The code that does the work is imported on demand."""

from pathlib import Path
from typing import Annotated

import typer

from odradek.tools.pipeline.options import Processes, log_directories, place_of

Deep = Annotated[
    bool, typer.Option("--deep", help="Read every record, not only those of internal logs.")
]
Json = Annotated[bool, typer.Option("--json", help="Print everything as one JSON object.")]


def verify(
    *,
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="The log directories of one node (log.dirs)."),
    ],
    deep: Deep = False,
    json: Json = False,
    processes: Processes = None,
) -> None:
    """Check whole data directories, and say what a broker's start would do about each problem.

    Nothing is changed or locked: a broker may be running, also Apache Kafka's. The exit code is 0
    if there are no problems, else 1.
    """
    paths, place = log_directories(directories, "DIR"), place_of(processes, None, None)
    from odradek.tools.pipeline.running import run_job

    def job() -> int:
        from .command import run

        return run(paths, place, deep=deep, as_json=json)

    run_job(job)
