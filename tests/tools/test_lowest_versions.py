"""The command with the lowest versions of typer and rich that pyproject.toml allows.

They are installed beside the tests' own libraries, which takes a while: only in `make long`.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT
from tests.support.lengths import LONG

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not LONG, reason="installs other versions of typer and rich: `make long`"),
]
# A failure of the program, not of the user's: with a password in the variables of a function.
FAILING = """
from odradek.tools.client import client_config
def fail(given, file):
    password = given["sasl.password"]
    raise RuntimeError("a failure")
client_config._translated = fail
"""
PROGRAM = "from odradek.tools.cli import main; main()"

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest = [
        f"{found[1]}=={found[2]}"
        for each in project["dependencies"]
        if (found := re.fullmatch(r"(typer|rich)>=([\d.]+)", each))
    ]
    assert len(lowest) == 2
    target = tmp_path_factory.mktemp("lowest")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", target, *lowest], check=True)
    path = os.pathsep.join([str(target), *filter(None, sys.path)])

    def run_command(*words: str, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, *words],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    return run_command


def test_a_traceback_shows_no_password(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.password=very-secret\n")
    done = run("topics", "list", "--config", str(file), program=FAILING + PROGRAM)
    assert done.returncode == 1
    assert "a failure" in done.stderr
    assert "very-secret" not in done.stderr


@pytest.mark.parametrize("words", ["--help", "consume --help", "pipeline --help", "verify --help"])
def test_the_help_is_shown(run: Run, words: str) -> None:
    done = run(*words.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert "Usage" in done.stdout


def test_wrong_usage_and_failures_are_said(run: Run) -> None:
    assert run("consume", "orders", "--json", "-J").returncode == 2
    done = run("topics", "list", "-b", "127.0.0.1:1")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
