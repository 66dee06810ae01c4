"""The options of `odradek topics`. The code that does the work is imported on demand."""

from typing import Annotated

import typer

from .failure import reported
from .options import LARGEST_INT32, AsJson, Bootstrap, ConfigFile, Settings, pairs, parse_name

app = typer.Typer(help="List, create, describe, alter and delete topics.", no_args_is_help=True)

Names = Annotated[list[str], typer.Argument(metavar="TOPIC...", parser=parse_name)]


@app.command("list")
def list_(
    *,
    internal: Annotated[bool, typer.Option("--internal", help="Internal topics, too.")] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """List the topics, with their partitions and the number of their offsets."""
    with reported():
        from .topics import TopicCommands

        TopicCommands(bootstrap, config).show_all(internal=internal, as_json=as_json)


@app.command()
def create(
    *,
    topics: Names,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            "-p",
            min=1,
            max=LARGEST_INT32,
            help="\\[default: the broker's num.partitions]",
        ),
    ] = None,
    settings: Settings = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Leave topics that exist as they are.")
    ] = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Create topics."""
    configs = pairs(settings)
    with reported():
        from .topics import TopicCommands

        commands = TopicCommands(bootstrap, config)
        commands.create(topics, partitions, configs, if_not_exists=if_not_exists)


@app.command()
def describe(
    *,
    topics: Names,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Show the partitions of topics, and the settings that differ from the broker's."""
    with reported():
        from .topics import TopicCommands

        TopicCommands(bootstrap, config).describe(topics, as_json=as_json)


@app.command()
def alter(
    *,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", parser=parse_name)],
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", "-p", min=1, max=LARGEST_INT32, help="The new number of partitions."
        ),
    ] = None,
    settings: Settings = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            "--unset",
            metavar="KEY",
            parser=parse_name,
            help="Return to the broker's value of a setting.",
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Add partitions to a topic, or change its settings."""
    configs = pairs(settings, unset)
    if partitions is None and not configs and not unset:
        raise typer.BadParameter("nothing to change: give --partitions, --set or --unset")
    with reported():
        from .topics import TopicCommands

        TopicCommands(bootstrap, config).alter(topic, partitions, configs, unset or [])


@app.command()
def delete(*, topics: Names, bootstrap: Bootstrap = None, config: ConfigFile = None) -> None:
    """Delete topics with all their records. It cannot be undone."""
    with reported():
        from .topics import TopicCommands

        TopicCommands(bootstrap, config).delete(topics)
