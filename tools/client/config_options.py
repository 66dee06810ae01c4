"""The options of `odradek configs`. The code that does the work is imported on demand."""

from enum import StrEnum
from typing import Annotated

import typer

from .failure import reported
from .options import AsJson, Bootstrap, ConfigFile, Settings, pairs, parse_name, parse_text

app = typer.Typer(
    help="Show and change the settings of topics, brokers and groups.", no_args_is_help=True
)


class Kind(StrEnum):
    """What has settings."""

    TOPIC = "topic"
    BROKER = "broker"
    GROUP = "group"


KindArgument = Annotated[Kind, typer.Argument(metavar="topic|broker|group")]
Name = Annotated[
    str,
    typer.Argument(
        metavar="[NAME]",
        parser=parse_text,
        help="Of a broker: its node.id. Without it: all brokers.",
    ),
]


@app.command()
def describe(
    *,
    kind: KindArgument,
    name: Name = "",
    everything: Annotated[bool, typer.Option("--all", help="Defaults, too.")] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Show the settings that differ from Kafka's defaults, and where they are set."""
    with reported():
        from .configs import ConfigCommands

        commands = ConfigCommands(bootstrap, config)
        commands.describe(kind, name, everything=everything, as_json=as_json)


@app.command()
def alter(
    *,
    kind: KindArgument,
    name: Name = "",
    settings: Settings = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            "--unset",
            metavar="KEY",
            parser=parse_name,
            help="Remove a setting; the default applies again.",
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Change settings while the broker runs."""
    configs = pairs(settings, unset)
    if not configs and not unset:
        raise typer.BadParameter("nothing to change: give --set or --unset")
    with reported():
        from .configs import ConfigCommands

        ConfigCommands(bootstrap, config).alter(kind, name, configs, unset or [])
