"""The options of `odradek users`. The code that does the work is imported on demand."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .failure import reported
from .options import AsJson, Bootstrap, ConfigFile, parse_text

app = typer.Typer(
    help="List, add and delete users who log in by password (SCRAM).", no_args_is_help=True
)


class Mechanism(StrEnum):
    """How a user logs in."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


User = Annotated[str, typer.Argument(metavar="USER", parser=parse_text)]
Mechanisms = Annotated[
    list[Mechanism] | None, typer.Option("--mechanism", help="\\[default: both mechanisms]")
]


@app.command("list")
def list_(
    *,
    users: Annotated[
        list[str] | None,
        typer.Argument(metavar="USER", parser=parse_text, help="\\[default: all users]"),
    ] = None,
    as_json: AsJson = False,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """List users with their mechanisms. Passwords are not stored, so none is shown."""
    with reported():
        from .users import UserCommands

        with UserCommands(bootstrap, config) as commands:
            commands.show(users or [], as_json=as_json)


@app.command()
def add(
    *,
    user: User,
    mechanisms: Mechanisms = None,
    iterations: Annotated[
        int,
        typer.Option(
            "--iterations", min=4_096, max=16_384, help="How often the password is hashed."
        ),
    ] = 4_096,
    password_file: Annotated[
        Path | None,
        typer.Option(
            "--password-file",
            metavar="FILE",
            help="The file's first line is the password; -: of standard input. Without this option"
            " it is asked for.",
        ),
    ] = None,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Add a user, or change a user's password.

    The password is hashed here and never sent. It cannot be an argument, which others would see.
    """
    with reported():
        from .users import UserCommands, check_can_log_in, read_password

        check_can_log_in(user)
        password = read_password(user, password_file)
        with UserCommands(bootstrap, config) as commands:
            commands.add(user, password, list(mechanisms or Mechanism), iterations)


@app.command()
def delete(
    *,
    user: User,
    mechanisms: Annotated[
        list[Mechanism] | None,
        typer.Option("--mechanism", help="\\[default: all that the user has]"),
    ] = None,
    bootstrap: Bootstrap = None,
    config: ConfigFile = None,
) -> None:
    """Delete a user. Connections that are logged in stay until they end."""
    with reported():
        from .users import UserCommands

        with UserCommands(bootstrap, config) as commands:
            commands.delete(user, mechanisms or [])
