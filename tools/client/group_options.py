"""The options of `odradek groups`. The code that does the work is imported on demand."""

from typing import Annotated

import typer

from .failure import reported
from .moments import TIME_HELP
from .options import AsJson, Bootstrap, ConfigFile, parse_name, parse_text

app = typer.Typer(help="List, describe and delete groups; set their offsets.", no_args_is_help=True)

Names = Annotated[list[str], typer.Argument(metavar="GROUP...", parser=parse_name)]


@app.command("list")
def list_(
    *, as_json: AsJson = False, bootstrap: Bootstrap = None, config: ConfigFile = None
) -> None:
    """List the groups of all kinds."""
    with reported():
        from .group_list import GroupList

        with GroupList(bootstrap, config) as groups:
            groups.show(as_json=as_json)


@app.command()
def describe(
    *,
    groups: Names,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Show the offsets of groups, their lag, and who reads which partition."""
    with reported():
        from .groups import GroupCommands

        GroupCommands(bootstrap, config).describe(groups, as_json=as_json)


@app.command()
def watch(
    *,
    groups: Names,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.1)] = 2.0,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Show the lag of groups again and again, until control-C."""
    with reported():
        from .groups import GroupCommands

        GroupCommands(bootstrap, config).watch(groups, every)


@app.command("reset-offsets")
def reset_offsets(
    *,
    group: Annotated[str, typer.Argument(metavar="GROUP", parser=parse_name)],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="TARGET",
            parser=parse_text,
            help=f"earliest, latest, an offset, +N or -N from the committed one, {TIME_HELP}.",
        ),
    ],
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="TOPIC",
            parser=parse_name,
            help="\\[default: all topics that the group has offsets of]",
        ),
    ] = None,
    execute: Annotated[
        bool, typer.Option("--execute", help="Set them. Without it they are only shown.")
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Set the offsets of a group that has no members, or show what would be set."""
    with reported():
        from .groups import GroupCommands

        commands = GroupCommands(bootstrap, config)
        commands.reset_offsets(group, topics or [], to, execute=execute, as_json=as_json)


@app.command()
def delete(*, groups: Names, bootstrap: Bootstrap = None, config: ConfigFile = None) -> None:
    """Delete groups that have no members, with their offsets."""
    with reported():
        from .groups import GroupCommands

        GroupCommands(bootstrap, config).delete(groups)
