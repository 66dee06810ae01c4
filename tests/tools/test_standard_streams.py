"""Every command with an output that is full, closed, or whose reader has ended."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import typer

from odradek.broker.testing import Broker
from odradek.tools.app import app
from tests.docs.cli_page import commands
from tests.support.lengths import by_length

LIMIT_S = 60.0
PROGRAM = "from odradek.tools.cli import main; main()"
COMMAND = [sys.executable, "-c", PROGRAM]


def run(
    shell: str, words: Sequence[str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command by a shell; `shell` says what its streams are, with the command as "$@"."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell, "bash", *COMMAND, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def lines_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    return done.stderr.splitlines()


# Python's argparse, which prints the help of `serve`, says nothing of it. All others have one way
# to print it, so that a few stand for them.
ALL = [words for words, _ in commands(typer.main.get_command(app), ()) if words != ("serve",)]


@pytest.mark.slow
@pytest.mark.parametrize("words", by_length(ALL[::20], ALL), ids=" ".join)
def test_the_help_of_every_command_says_in_one_line_that_it_cannot_be_written(
    words: tuple[str, ...],
) -> None:
    for shell in ('"$@" > /dev/full', '"$@" >&-'):
        done = run(shell, [*words, "--help"])
        (line,) = lines_of(done)
        assert done.returncode == 1
        assert line.startswith("odradek: standard output cannot be written: ")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Broker(tmp_path_factory.mktemp("broker")) as broker:
        broker.create_topic("orders")
        for number in range(3000):
            broker.produce("orders", b"%d" % number)
        yield broker.bootstrap_servers


WITH_OUTPUT = [
    ["topics", "list"],
    ["topics", "describe", "orders", "--json"],
    ["consume", "orders"],
    ["consume", "orders", "--follow"],
    ["groups", "list"],
    ["configs", "describe", "topic", "orders", "--all"],
    ["transactions", "list"],
    ["users", "list"],
    ["quotas", "list"],
    ["doctor"],
]


@pytest.mark.parametrize(
    ("words", "shell"),
    [
        *((words, '"$@" > /dev/full') for words in by_length(WITH_OUTPUT[1:3], WITH_OUTPUT)),
        # A closed output is replaced before a command begins, the same for all.
        *((words, '"$@" >&-') for words in WITH_OUTPUT[2:3]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_an_output_that_cannot_be_written_is_one_line(
    address: str, words: list[str], shell: str
) -> None:
    done = run(shell, [*words, "-b", address])
    (line,) = lines_of(done)
    assert done.returncode == 1
    assert line.startswith("odradek: standard output cannot be written: ")


@pytest.mark.parametrize(
    "words",
    [
        ["verify", "."],
        ["pipeline", "stats", "--path=.", "--json"],
        ["why-not-deleted", "."],
        ["dump-log", "--files", f"orders-0/{0:020}.log"],
        ["format", "--override", "log.dirs=new"],
        ["--version"],
    ],
    ids=lambda words: words[0],
)
def test_a_command_about_files_says_that_its_output_cannot_be_written(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(b"")
    done = run('"$@" > /dev/full', words, tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert (
        lines_of(done)[-1] == "odradek: standard output cannot be written: No space left on device"
    )


@pytest.mark.parametrize(
    "shell",
    by_length(['"$@" 2>&-'], ['"$@" 2> /dev/full', '"$@" 2>&-', '"$@" <&- 2>&-']),
)
@pytest.mark.slow
def test_an_error_that_cannot_be_written_is_in_the_exit_code(address: str, shell: str) -> None:
    assert run(shell, ["topics", "describe", "missing", "-b", address]).returncode == 1
    done = run(shell, ["topics", "list", "-b", address])
    assert (done.returncode, "orders" in done.stdout) == (0, True)


@pytest.mark.slow
def test_a_closed_input_is_one_line(address: str) -> None:
    done = run('"$@" <&-', ["produce", "orders", "-b", address])
    assert done.returncode == 1
    (line,) = lines_of(done)
    assert "standard input cannot be read: Bad file descriptor" in line
    (line,) = lines_of(run('"$@" <&-', ["users", "add", "alice", "-b", address]))
    assert "password cannot be read" in line
    (line,) = lines_of(run('"$@" <&-', ["format", "--add-scram-file", "-"]))
    assert "Bad file descriptor" in line


@pytest.mark.slow
def test_problems_are_in_the_exit_code_also_if_nobody_reads_them(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(b"no batch" * 100)
    unread = '"$@" | true'
    for words in (["verify", "."], ["verify", ".", "--json"], ["verify", ".", "--topic=orders"]):
        done = run(unread, words, tmp_path)
        assert (done.returncode, lines_of(done)) == (1, [])
    done = run(unread, ["doctor", "-b", "127.0.0.1:1"])
    assert (done.returncode, lines_of(done)) == (1, [])
    done = run(unread, ["dump-log", "--files", "missing.log", "--json"], tmp_path)
    assert done.returncode == 1


def test_a_command_ends_with_the_reader_of_its_output(address: str) -> None:
    done = run('"$@" | head -n 1', ["consume", "orders", "--follow", "-b", address])
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_a_command_that_waits_notices_that_its_reader_has_ended(address: str) -> None:
    words = ["consume", "orders", "--follow", "--last", "2", "-b", address]
    done = run('"$@" | head -n 2', words)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2998\n2999\n", "")


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    program = (
        "from odradek.tools.standard_streams import open_closed_streams; open_closed_streams();"
        "import os; os._exit(os.open('file', os.O_CREAT | os.O_WRONLY))"
    )
    done = subprocess.run(
        ["bash", "-c", '"$@" <&- >&- 2>&-', "bash", sys.executable, "-c", program],
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 3


def test_a_character_that_the_locale_does_not_have_is_a_question_mark() -> None:
    program = (
        "from odradek.tools.standard_streams import watch_streams; watch_streams();"
        "print('ä → b', flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (b"\xe4 ? b\n", b"")


@pytest.mark.parametrize(
    ("encoding", "printed"), [("latin-1", b'"\\u00e4 \\u2192 b"\n'), ("utf8", '"ä → b"\n'.encode())]
)
def test_json_has_each_character_in_every_locale(encoding: str, printed: bytes) -> None:
    program = (
        "from odradek.tools.standard_streams import watch_streams; watch_streams();"
        "from odradek.tools.tables import print_json; print_json('ä → b')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == (printed, b"")


def test_no_traceback_shows_local_variables() -> None:
    """See also test_lowest_versions.py."""
    assert app.pretty_exceptions_show_locals is False
