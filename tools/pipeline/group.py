"""The commands of `odradek pipeline`, each imported when it is asked for.

A job is a module here with a function `command`; it has a line in JOBS, and nothing else to do.
"""

from importlib import import_module

import typer
from typer.core import TyperCommand, TyperGroup

JOBS = ("archive", "replay", "verify", "stats", "etl")


class JobGroup(TyperGroup):
    """Finds a command by importing the module of its name."""

    def list_commands(self, ctx: object) -> list[str]:  # noqa: ARG002 # typer's
        """In the order of JOBS."""
        return list(JOBS)

    def get_command(
        self,
        ctx: object,  # noqa: ARG002 # typer's
        cmd_name: str,
    ) -> TyperCommand | None:
        """None for a name that no job has."""
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
    """Archive, replay, check and transform topics on Spark (needs the extra `spark`)."""
