"""The options of `odradek produce` and `odradek consume`. Their code is imported on demand."""

from typing import Annotated

import typer

from .failure import reported
from .moments import TIME_HELP
from .options import LARGEST_INT32, Bootstrap, ConfigFile, parse_name, parse_text, refuse_together

DEFAULT_FORMAT = r"%s\n"

Topic = Annotated[str, typer.Argument(metavar="TOPIC", parser=parse_name)]


def produce(  # noqa: PLR0913 - one parameter per option
    *,
    topic: Topic,
    separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator",
            "-K",
            metavar="TEXT",
            parser=parse_text,
            help="A line is KEY, this text, and VALUE.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            "-k",
            metavar="KEY",
            parser=parse_text,
            help="The key of all records. \\[default: null]",
        ),
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            "-H",
            metavar="NAME=VALUE",
            parser=parse_text,
            help="May be given several times.",
        ),
    ] = None,
    partition: Annotated[
        int | None,
        typer.Option("--partition", "-p", min=0, max=LARGEST_INT32, help="\\[default: by the key]"),
    ] = None,
    null: Annotated[
        bool, typer.Option("--null", "-Z", help="An empty value is null, which deletes a key.")
    ] = False,
    from_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="Lines are as `odradek consume --json` prints them. Other fields are refused; a"
            ' value that is null is written as "value": null.',
        ),
    ] = False,
    from_kcat: Annotated[
        bool, typer.Option("--kcat-json", "-J", help="Lines are as `kcat -J` prints them.")
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
    refuse_together({"--json": from_json, "--kcat-json": from_kcat})
    refuse_together({"--key": key is not None, "--key-separator": separator is not None})
    refuse_together({"--partition": partition is not None, "--keep-partitions": keep_partitions})
    json_option = "--kcat-json" if from_kcat else "--json"
    is_json = from_json or from_kcat
    refuse_together({json_option: is_json, "--key": key is not None})
    refuse_together({json_option: is_json, "--key-separator": separator is not None})
    refuse_together({json_option: is_json, "--null": null})
    if keep_partitions and not is_json:
        raise typer.BadParameter("--keep-partitions needs --json or --kcat-json")
    parsed: list[tuple[str, str | bytes | None]] = []
    for header in headers or []:
        name, equals, value = header.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{header} is not NAME=VALUE", param_hint="--header")
        parsed.append((name, value.encode()))
    with reported():
        from .producing import ProduceOptions
        from .producing import produce as send
        from .record_json import parse_json, parse_kcat

        options = ProduceOptions(
            topic=topic,
            partition=partition,
            separator=separator,
            key=key,
            headers=parsed,
            null_if_empty=null,
            parse=parse_json if from_json else parse_kcat if from_kcat else None,
            keep_partitions=keep_partitions,
        )
        send(options, bootstrap, config)


def consume(  # noqa: PLR0913 - one parameter per option
    *,
    topic: Topic,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="POSITION",
            parser=parse_text,
            help=f"earliest, latest, an offset, {TIME_HELP}. \\[default: earliest]",
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="POSITION",
            parser=parse_text,
            help="Stop before this position, an offset or a time. \\[default: the present end]",
        ),
    ] = None,
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
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="%t topic, %p partition, %o offset, %T timestamp, %k key, %s value, %h headers,"
            " %K and %S sizes; \\n, \\t, \\xHH  \\[default: %s\\n]",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Lines of JSON, for `odradek produce --json`."),
    ] = False,
    as_kcat: Annotated[
        bool,
        typer.Option(
            "--kcat-json", "-J", help="Lines of JSON as `kcat -J` prints them; only for UTF-8 text."
        ),
    ] = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Print the records of a topic, up to its present end."""
    refuse_together({"--from": start is not None, "--last": last is not None})
    refuse_together({"--follow": follow, "--until": until is not None})
    refuse_together({"--format": format_ is not None, "--json": as_json, "--kcat-json": as_kcat})
    with reported():
        from .consuming import ConsumeOptions
        from .consuming import consume as read
        from .record_format import RecordFormat
        from .record_json import json_line, kcat_line

        text = RecordFormat(DEFAULT_FORMAT if format_ is None else format_)
        options = ConsumeOptions(
            topic=topic,
            partitions=partitions or [],
            start="earliest" if start is None else start,
            until="latest" if until is None else until,
            last=last,
            limit=limit,
            follow=follow,
            committed=not uncommitted,
            line=json_line if as_json else kcat_line if as_kcat else text.line,
        )
        read(options, bootstrap, config)
