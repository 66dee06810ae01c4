"""The options of `odradek verify`. The code that does the work is imported on demand."""

from pathlib import Path
from typing import Annotated

import typer


def verify(
    *,
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="The log directories of one node (log.dirs)."),
    ],
    deep: Annotated[
        bool, typer.Option("--deep", help="Read every record, not only those of internal logs.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per finding.")] = False,
) -> None:
    """Check whole data directories, and say what a broker's start would do about each problem.

    Nothing is changed or locked: a broker may be running, also Apache Kafka's. The exit code is 0
    if there are no problems, else 1.
    """
    for path in directories:
        if not path.is_dir():
            raise typer.BadParameter(f"{path} is not a directory", param_hint="DIR")
    from .command import run

    raise typer.Exit(run(directories, deep=deep, as_json=json))
