"""The options of `odradek why-not-deleted`. The code that does the work is imported on demand."""

from pathlib import Path
from typing import Annotated

import typer


def why_not_deleted(
    *,
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="The log directories of one node (log.dirs)."),
    ],
    topic: Annotated[list[str] | None, typer.Option("--topic", help="Only this topic.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", help="Only this partition.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="The server.properties of the broker."),
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", metavar="KEY=VALUE", help="A property that overrides the file."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per segment.")] = False,
) -> None:
    """Explain for each segment of a log why retention keeps it and until when, or deletes it.

    Only reads the files. A broker may be running.
    """
    for path in directories:
        if not path.is_dir():
            raise typer.BadParameter(f"{path} is not a directory", param_hint="DIR")
    from .command import run

    def is_included(name: str, number: int) -> bool:
        return (not topic or name in topic) and (not partition or number in partition)

    code = run(directories, is_included, file=config, overrides=override or [], as_json=json)
    raise typer.Exit(code)
