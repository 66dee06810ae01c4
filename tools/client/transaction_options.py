"""The commands of `odradek transactions` and their options. What they do is in transactions.py."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .failure import reported
from .options import AsJson, Bootstrap, ConfigFile, parse_name, parse_text

if TYPE_CHECKING:
    from .transactions import TransactionCommands

app = typer.Typer(help="Show transactions, and end those that hang.", no_args_is_help=True)

Ids = Annotated[list[str], typer.Argument(metavar="TRANSACTIONAL_ID...", parser=parse_name)]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC", parser=parse_name, help="\\[default: all topics]"),
]


@contextmanager
def _commands(bootstrap: str | None, config: Path | None) -> Iterator["TransactionCommands"]:
    """Connect, and report a failure. The client that this imports may not be installed."""
    with reported():
        from .transactions import TransactionCommands

        with TransactionCommands(bootstrap, config) as commands:
            yield commands


@app.command("list")
def list_(
    *,
    states: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="STATE",
            parser=parse_text,
            help="Ongoing, PrepareCommit, CompleteAbort, ...",
        ),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """List the transactional ids."""
    with _commands(bootstrap, config) as commands:
        commands.show_all(states or [], as_json=as_json)


@app.command()
def describe(
    *,
    transactional_ids: Ids,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Show the state of transactional ids, and the partitions of their transactions."""
    with _commands(bootstrap, config) as commands:
        commands.describe(transactional_ids, as_json=as_json)


@app.command("open")
def open_(
    *,
    topics: Topics = None,
    hanging: Annotated[
        bool,
        typer.Option("--hanging", help="Only those that belong to no transactional id."),
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Show the transactions that are open in partitions, which block read_committed consumers."""
    with _commands(bootstrap, config) as commands:
        commands.show_open(topics or [], only_hanging=hanging, as_json=as_json)


@app.command()
def abort(
    *,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", parser=parse_name)],
    partition: Annotated[int, typer.Argument(metavar="PARTITION", min=0)],
    start_offset: Annotated[
        int | None,
        typer.Option("--start-offset", help="Needed if several transactions are open there."),
    ] = None,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Abort a transaction that hangs in a partition. Use `terminate` if it has an id."""
    with _commands(bootstrap, config) as commands:
        commands.abort(topic, partition, start_offset)


@app.command()
def terminate(
    *,
    transactional_id: Annotated[str, typer.Argument(metavar="TRANSACTIONAL_ID", parser=parse_name)],
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Fence the producer of a transactional id, which aborts its open transaction."""
    with _commands(bootstrap, config) as commands:
        commands.terminate(transactional_id)
