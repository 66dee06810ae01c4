"""The command `odradek` itself."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from rich.text import Text

from odradek.tools.app import app
from tests.docs.cli_page import commands

# Says at its end which of the rooms were loaded; `config.key`: the table of all configuration keys.
PROGRAM = """
import atexit, sys
from odradek.tools.cli import main
WATCHED = ("protocol", "storage", "config.key", "coordinator", "broker")
atexit.register(lambda: print(*(n for n in WATCHED if f"odradek.{n}" in sys.modules)))
main()
"""


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["--help"], ""),
        (["why-not-deleted", "--help"], ""),
        (["dump-log", "--files", "0.log"], "protocol storage coordinator"),
        (["verify", "."], "protocol storage coordinator"),
        (["why-not-deleted", "."], "protocol storage config.key coordinator broker"),
    ],
)
def test_a_command_loads_what_it_needs(tmp_path: Path, arguments: list[str], loaded: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == loaded, done.stderr


def test_the_help_names_all_commands(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--help"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0
    for command in ("serve", "dump-log", "verify", "why-not-deleted", "users", "acls", "pipeline"):
        assert f" {command} " in done.stdout


@pytest.mark.parametrize("command", ["produce orders", "topics list", "bench"])
def test_a_command_says_that_it_needs_the_client(command: str) -> None:
    program = (
        "import sys; sys.modules['confluent_kafka'] = None;"
        f"sys.argv[1:] = {command.split()!r};"
        "from odradek.tools.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    expected = "odradek: this command needs confluent-kafka: pip install 'odradek[cli]'\n"
    assert (done.returncode, done.stderr) == (1, expected)


def test_the_help_shows_what_is_in_brackets() -> None:
    """Rich takes them for markup, and shows nothing of them, unless they are escaped."""
    for words, command in commands(typer.main.get_command(app), ()):
        for each in (command, *command.params):
            text = getattr(each, "help", None) or ""
            shown = Text.from_markup(text).plain
            assert shown == text.replace("\\[", "["), (words, each.name)
