"""The options of `odradek verify`; the work is in `verify/`, imported when it is asked for."""

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
    """Look at whole data directories: what is wrong, and what a start would do about it.

    Nothing is changed, and nothing is locked: a broker may be running, Apache Kafka's too. Ends
    with 0 where all is sound, with 1 where there are problems.
    """
    for path in directories:
        if not path.is_dir():
            raise typer.BadParameter(f"{path} is no directory", param_hint="DIR")
    from .verify.command import run

    raise typer.Exit(run(directories, deep=deep, as_json=json))
