"""The options of `odradek format`. The code that does the work is imported on demand."""

from pathlib import Path
from typing import Annotated

import typer


def format_directories(
    *,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="The server.properties file of the broker."),
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", metavar="KEY=VALUE", help="A property that overrides the file."),
    ] = None,
    cluster_id: Annotated[
        str | None,
        typer.Option("--cluster-id", "-t", metavar="ID", help="The cluster id; default: random."),
    ] = None,
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            "--add-scram",
            "-S",
            metavar="CREDENTIAL",
            help="A SCRAM user, as in 'SCRAM-SHA-256=\\[name=alice,password=alice-secret]'."
            " Other users of the machine can see it while the command runs.",
        ),
    ] = None,
    add_scram_file: Annotated[
        typer.FileText | None,
        typer.Option(
            "--add-scram-file",
            metavar="FILE",
            help="A file with one such credential per line; - is the standard input.",
        ),
    ] = None,
    release_version: Annotated[
        str | None,
        typer.Option(
            "--release-version",
            "-r",
            metavar="VERSION",
            help="The release of Kafka whose records and features are used, as in 4.3;"
            " default: the newest that odradek knows.",
        ),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            "--feature",
            "-f",
            metavar="NAME=LEVEL",
            help="A feature's level, as in share.version=1.",
        ),
    ] = None,
    ignore_formatted: Annotated[
        bool,
        typer.Option(
            "--ignore-formatted", "-g", help="Leave directories that are formatted as they are."
        ),
    ] = False,
) -> None:
    """Format the empty data directories of a broker, with its first SCRAM users.

    A broker formats empty directories at its start by itself. This command is for a user that must
    exist before that, because every listener needs a login, and for a directory that an older
    Apache Kafka shall serve, too (--release-version).
    """
    from .command import run

    try:
        lines = [line.strip() for line in add_scram_file or ()]
    except UnicodeDecodeError:  # its message has a byte of a secret
        raise typer.BadParameter("it is not UTF-8", param_hint="--add-scram-file") from None
    raise typer.Exit(
        run(
            file,
            override or [],
            cluster_id=cluster_id,
            credentials=[*(add_scram or []), *filter(None, lines)],
            release_version=release_version,
            features=feature or [],
            ignore_formatted=ignore_formatted,
        )
    )
