"""The options of `odradek doctor`. The code that does the work is imported on demand."""

from pathlib import Path
from typing import Annotated

import typer

from odradek.tools.client.failure import reported
from odradek.tools.client.options import AsJson, Bootstrap, ConfigFile
from odradek.tools.standard_streams import reader_may_end


def doctor(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[SERVER.PROPERTIES]",
            help="Check this machine, too: for a broker with this file.",
        ),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Find out why clients cannot work with a broker: connect as they do, and say what is wrong.

    Nothing is changed. The exit code is 1 if there is a problem.
    """
    with reported():
        from .command import run

        with reader_may_end():
            code = run(file, bootstrap, config, as_json=as_json)
        raise typer.Exit(code)
