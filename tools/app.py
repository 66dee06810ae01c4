"""The commands of `odradek`, as typer shows them.

For its help, all of them are looked at: so each imports what it needs when it is run, not before.
"""

from typing import Annotated

import typer

from .dump_log import dump_log
from .pipeline.group import app as pipeline
from .verify_directories import verify
from .why_not_deleted import why_not_deleted

app = typer.Typer(
    help="odradek: a Kafka broker in one Python process.", no_args_is_help=True, add_completion=True
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"odradek {version('odradek')}")
        raise typer.Exit


@app.callback()
def odradek(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """A Kafka broker in one Python process."""


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def serve(context: typer.Context) -> None:
    """Run the broker: odradek serve [FILE] [--override KEY=VALUE]..."""
    from .serve import main

    raise typer.Exit(main(context.args))


app.command("dump-log")(dump_log)
app.command("verify")(verify)
app.command("why-not-deleted")(why_not_deleted)
app.add_typer(pipeline, name="pipeline")
