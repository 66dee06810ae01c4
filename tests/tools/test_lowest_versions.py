"""The lowest versions of libraries that pyproject.toml allows: the command, codecs, patterns.

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
    pytest.mark.skipif(not LONG, reason="installs other versions of libraries: `make long`"),
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


def install_lowest(target: Path, *names: str) -> str:
    """Install the lowest versions of libraries. Returns a PYTHONPATH that has them first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lowest = [
        f"{found[1]}=={found[2]}"
        for each in [*project["dependencies"], *project["optional-dependencies"]["fast"]]
        if (found := re.match(r"([\w-]+)>=([\d.]+)", each)) and found[1] in names
    ]
    assert len(lowest) == len(names)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", target, *lowest], check=True)
    return os.pathsep.join([str(target), *filter(None, sys.path)])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    path = install_lowest(tmp_path_factory.mktemp("lowest"), "typer", "rich")

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


def test_codecs_and_patterns_pass_their_tests(tmp_path: Path) -> None:
    names = ("cramjam", "lz4", "zstandard", "google-re2", "xxhash", "zlib-ng")
    path = install_lowest(tmp_path, *names)
    tests = [
        *(
            f"tests/protocol/test_{name}.py"
            for name in ("compression", "lz4_header", "zstd_frames")
        ),
        "tests/config/test_linear_patterns.py",
        "tests/coordinator/consumer_groups/test_subscription_regex.py",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "not slow and not java", *tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "ODRADEK_TEST_LENGTH": "short"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
