"""The typer application: all commands of `odradek`.

Typer imports the options of every command to print the help. So the modules imported here hold
options only, and each command imports the code that does its work when it runs.
"""

from typing import Annotated

import typer

from odradek.tools.bench.options import bench
from odradek.tools.client.acl_options import app as acls
from odradek.tools.client.config_options import app as configs
from odradek.tools.client.group_options import app as groups
from odradek.tools.client.quota_options import app as quotas
from odradek.tools.client.record_options import consume, produce
from odradek.tools.client.token_options import app as tokens
from odradek.tools.client.topic_options import app as topics
from odradek.tools.client.transaction_options import app as transactions
from odradek.tools.client.user_options import app as users
from odradek.tools.doctor.options import doctor
from odradek.tools.dump.options import dump_log
from odradek.tools.format.options import format_directories
from odradek.tools.pipeline.group import app as pipeline
from odradek.tools.retention.options import why_not_deleted
from odradek.tools.verify.options import verify

app = typer.Typer(
    help="odradek: a Kafka broker in one Python process.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_show_locals=False,  # they can be passwords
)


def _print_version(is_set: bool) -> None:
    if is_set:
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


app.command("doctor")(doctor)
app.command("format")(format_directories)
app.command("bench")(bench)
app.command("produce")(produce)
app.command("consume")(consume)
app.command("dump-log")(dump_log)
app.command("verify")(verify)
app.command("why-not-deleted")(why_not_deleted)
app.add_typer(topics, name="topics")
app.add_typer(groups, name="groups")
app.add_typer(configs, name="configs")
app.add_typer(transactions, name="transactions")
app.add_typer(users, name="users")
app.add_typer(acls, name="acls")
app.add_typer(quotas, name="quotas")
app.add_typer(tokens, name="tokens")
app.add_typer(pipeline, name="pipeline")
