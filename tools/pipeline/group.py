"""The command group `odradek pipeline`. Each command is imported when it is used.

A job is a module of this package with a function `command`. Adding its name to JOBS registers it.
"""

from importlib import import_module

import typer
from typer.core import TyperCommand, TyperGroup

JOBS = ("archive", "tables", "replay", "stats")


class JobGroup(TyperGroup):
    """A typer group that imports the module of a command when the command is looked up."""

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 - typer passes it
        """The names, in the order of JOBS."""
        return list(JOBS)

    def get_command(
        self,
        ctx: object,  # noqa: ARG002 - typer passes it
        cmd_name: str,
    ) -> TyperCommand | None:
        """The command of that name; None if there is none."""
        if cmd_name not in JOBS:
            return None
        module = import_module(f".{cmd_name}", __package__)
        app = typer.Typer(add_completion=False)
        app.command(cmd_name)(module.command)
        command = typer.main.get_command(app)
        assert isinstance(command, TyperCommand)
        return command


app = typer.Typer(
    cls=JobGroup,
    no_args_is_help=True,
)


@app.callback()
def pipeline() -> None:
    """Archive, replay and count topics (needs the extra `pipeline`)."""
