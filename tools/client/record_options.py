"""The options of `odradek produce` and `odradek consume`. Their code is imported on demand."""

from typing import Annotated

import typer

from .failure import reported
from .options import Bootstrap, ConfigFile

Topic = Annotated[str, typer.Argument(metavar="TOPIC")]


def produce(  # noqa: PLR0913 - one parameter per option
    *,
    topic: Topic,
    separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator", "-K", metavar="TEXT", help="A line is KEY, this text, and VALUE."
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", "-k", help="The key of all records. \\[default: null]")
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", "-H", metavar="NAME=VALUE", help="May be given several times."),
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", "-p", min=0, help="\\[default: by the key]")
    ] = None,
    null: Annotated[
        bool, typer.Option("--null", "-Z", help="An empty value is null, which deletes a key.")
    ] = False,
    from_json: Annotated[
        bool, typer.Option("--json", help="Lines are as `odradek consume --json` prints them.")
    ] = False,
    keep_partitions: Annotated[
        bool, typer.Option("--keep-partitions", help="Send to the partitions that the JSON names.")
    ] = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Send each line of standard input as a record."""
    if separator == "":
        raise typer.BadParameter("the separator is empty", param_hint="--key-separator")
    if from_json and (separator is not None or key is not None):
        raise typer.BadParameter("--json has the keys in it: give no --key and no --key-separator")
    parsed: list[tuple[str, str | bytes | None]] = []
    for header in headers or []:
        name, equals, value = header.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{header} is not NAME=VALUE", param_hint="--header")
        parsed.append((name, value.encode()))
    with reported():
        from .producing import ProduceOptions
        from .producing import produce as send

        options = ProduceOptions(
            topic=topic,
            partition=partition,
            separator=separator,
            key=key,
            headers=parsed,
            null_if_empty=null,
            from_json=from_json,
            keep_partitions=keep_partitions,
        )
        sent = send(options, bootstrap, config)
        typer.echo(f"sent {sent} records to {topic}", err=True)


def consume(  # noqa: PLR0913 - one parameter per option
    *,
    topic: Topic,
    start: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="START",
            help="earliest, latest, an offset, a moment (2026-11-23T08:30), or an age (15m).",
        ),
    ] = "earliest",
    last: Annotated[
        int | None,
        typer.Option("--last", "-n", metavar="N", min=0, help="The last N of each partition."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--max", "-c", metavar="N", min=1, help="Stop after N records.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on when the end is reached.")
    ] = False,
    partitions: Annotated[
        list[int] | None, typer.Option("--partition", "-p", min=0, help="\\[default: all]")
    ] = None,
    uncommitted: Annotated[
        bool, typer.Option("--uncommitted", help="Records of open and aborted transactions, too.")
    ] = False,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="%t topic, %p partition, %o offset, %T timestamp, %k key, %s value, %h headers,"
            " %K and %S sizes; \\n, \\t, \\xHH",
        ),
    ] = "%s\\n",
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Lines of JSON, for `odradek produce --json`."),
    ] = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Print the records of a topic, up to its present end."""
    with reported():
        from .consuming import ConsumeOptions
        from .consuming import consume as read

        options = ConsumeOptions(
            topic=topic,
            partitions=partitions or [],
            start=start,
            last=last,
            limit=limit,
            follow=follow,
            committed=not uncommitted,
            format=format_,
            as_json=as_json,
        )
        read(options, bootstrap, config)
