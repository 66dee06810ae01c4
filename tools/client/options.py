"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap",
        "-b",
        metavar="HOST:PORT",
        envvar="ODRADEK_BOOTSTRAP",
        help="The broker. \\[default: bootstrap.servers in --config, or localhost:9092]",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        envvar="ODRADEK_CLIENT_CONFIG",
        help="Properties of the client, for example its credentials; of librdkafka or of Java.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting; may be given several times."),
]


def pairs(settings: list[str] | None) -> dict[str, str]:
    """Settings as a dictionary. Raises BadParameter."""
    found = {}
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{setting} is not KEY=VALUE", param_hint="--set")
        found[name] = value
    return found
