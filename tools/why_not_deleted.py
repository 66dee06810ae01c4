"""The options of `odradek why-not-deleted`; the work is in `retention/`, imported when asked."""

from pathlib import Path
from typing import Annotated

import typer


def why_not_deleted(
    *,
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="The log directories of one node (log.dirs)."),
    ],
    topic: Annotated[list[str] | None, typer.Option("--topic", help="Only this one.")] = None,
    partition: Annotated[
        list[int] | None, typer.Option("--partition", help="Only this one.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="The server.properties of the broker."),
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", metavar="KEY=VALUE", help="A property that wins over the file."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per segment.")] = False,
) -> None:
    """Say of each segment of a log what keeps it and until when, or what deletes it.

    Read from the files alone, nothing is changed; a broker may be running.
    """
    for path in directories:
        if not path.is_dir():
            raise typer.BadParameter(f"{path} is no directory", param_hint="DIR")
    from .retention.command import run

    def wanted(name: str, number: int) -> bool:
        return (not topic or name in topic) and (not partition or number in partition)

    code = run(directories, wanted, file=config, overrides=override or [], as_json=json)
    raise typer.Exit(code)
