"""The options of `odradek bench`. The code that does the work is imported on demand."""

from pathlib import Path
from typing import Annotated

import typer

from odradek.tools.client.failure import reported
from odradek.tools.client.options import AsJson, Bootstrap, ConfigFile


def bench(
    *,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="How long each of the three measurements takes.")
    ] = 5.0,
    directory: Annotated[
        Path | None,
        typer.Option(
            file_okay=False,
            exists=True,
            writable=True,
            help="Where the broker that is started keeps its data. \\[default: the system's"
            " directory for temporary files]",
        ),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Measure throughput and latency, and compare them with a machine of two cores.

    Without --bootstrap and --config, a broker is started for it. Otherwise a topic is created at
    that broker, and deleted at the end.
    """
    with reported():
        from .command import run

        run(seconds, directory, bootstrap, config, as_json=as_json)
