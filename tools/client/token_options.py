"""The options of `odradek tokens`. The code that does the work is imported on demand."""

from typing import Annotated

import typer

from .failure import reported
from .options import AsJson, Bootstrap, ConfigFile, parse_text

app = typer.Typer(help="Create, list, renew and expire delegation tokens.", no_args_is_help=True)

TokenId = Annotated[str, typer.Argument(metavar="TOKEN_ID", parser=parse_text)]
_DURATION = "for example 90m, 12h or 7d"


@app.command("list")
def list_(
    *,
    owners: Annotated[
        list[str] | None,
        typer.Option("--owner", metavar="USER", parser=parse_text, help="\\[default: any]"),
    ] = None,
    secrets: Annotated[
        bool, typer.Option("--secrets", help="With the HMACs, by which clients log in.")
    ] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """List the tokens that the user of --config may see."""
    with reported():
        from .tokens import TokenCommands

        with TokenCommands(bootstrap, config) as commands:
            commands.show(owners or [], secrets=secrets, as_json=as_json)


@app.command()
def create(
    *,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner", metavar="USER", parser=parse_text, help="\\[default: the user of --config]"
        ),
    ] = None,
    renewers: Annotated[
        list[str] | None,
        typer.Option(
            "--renewer",
            metavar="USER",
            parser=parse_text,
            help="Who may renew it, besides its owner.",
        ),
    ] = None,
    lifetime: Annotated[
        str | None,
        typer.Option(
            "--max-lifetime",
            metavar="TIME",
            parser=parse_text,
            help=f"{_DURATION} \\[default: the broker's limit]",
        ),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Create a token and print its id (a client's user name) and its HMAC (the password)."""
    with reported():
        from .tokens import TokenCommands, parse_duration_ms

        lifetime_ms = parse_duration_ms(lifetime)
        with TokenCommands(bootstrap, config) as commands:
            commands.create(owner, renewers or [], lifetime_ms, as_json=as_json)


@app.command()
def renew(
    *,
    token_id: TokenId,
    period: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="TIME",
            parser=parse_text,
            help=f"{_DURATION} \\[default: the broker's limit]",
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Let a token expire later."""
    with reported():
        from .tokens import TokenCommands, parse_duration_ms

        period_ms = parse_duration_ms(period)
        with TokenCommands(bootstrap, config) as commands:
            commands.renew(token_id, period_ms)


@app.command()
def expire(
    *,
    token_id: TokenId,
    period: Annotated[
        str | None,
        typer.Option(
            "--in", metavar="TIME", parser=parse_text, help=f"{_DURATION} \\[default: now]"
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Remove a token, or let it expire earlier."""
    with reported():
        from .tokens import TokenCommands, parse_duration_ms

        period_ms = parse_duration_ms(period)
        with TokenCommands(bootstrap, config) as commands:
            commands.expire(token_id, period_ms)
