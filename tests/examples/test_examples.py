"""The examples, each copied to a directory of its own and run as its reader would run it.

Examples of other languages, of Spark, and of packages which the project does not have run in
`make long`. They fetch what they need, or are skipped where that fails.
"""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.support.java_tools import why_no_java
from tests.support.lengths import LONG, by_length

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
LIMIT_S = 600
PYTEST = ["-m", "pytest", "-q", "-W", "ignore::pytest.PytestDeprecationWarning"]
TAKES_LONG = pytest.mark.skipif(not LONG, reason="runs in `make long`")


class CommandFailedError(Exception):
    """A command ended with another code than 0. The message is what it wrote."""


def run(directory: Path, *command: str | Path) -> str:
    """Run a command with `odradek` on its path; what it wrote. Raises CommandFailedError."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PATH": path},
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
    )
    if done.returncode != 0:
        raise CommandFailedError(done.stdout)
    return done.stdout


def fetch(directory: Path, *command: str | Path) -> None:
    """Run a command that fetches packages; the test is skipped, with the reason, if it fails."""
    try:
        run(directory, *command)
    except CommandFailedError as error:
        pytest.skip(f"{command[0]} could not fetch what the example needs: {str(error)[-300:]}")


def copy_of(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / name, tmp_path / name))


def installed_packages() -> list[str]:
    """The directories of the packages that the running interpreter imports."""
    inside = ("site-packages", ".pkg")
    return [entry for entry in sys.path if Path(entry).name in inside]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    by_length(
        ["kafka-python", "failures"], ["kafka-python", "failures", "aiokafka", "confluent-kafka"]
    ),
)
def test_an_example_with_a_client_for_python_passes(name: str, tmp_path: Path) -> None:
    assert " passed" in run(copy_of(name, tmp_path), sys.executable, *PYTEST)


@pytest.mark.slow
def test_the_example_with_unittest_passes(tmp_path: Path) -> None:
    output = run(copy_of("unittest", tmp_path), sys.executable, "-m", "unittest")
    assert "Ran 2 tests" in output


@TAKES_LONG
@pytest.mark.java
def test_the_example_with_spark_passes(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("java not found: Spark cannot run")
    assert "2 passed" in run(copy_of("pyspark", tmp_path), sys.executable, *PYTEST)


@TAKES_LONG
@pytest.mark.slow
@pytest.mark.parametrize("name", ["faststream", "quixstreams"])
def test_an_example_with_a_framework_passes(name: str, tmp_path: Path) -> None:
    """The environment has the project's packages, and what the example adds, in their versions."""
    directory = copy_of(name, tmp_path)
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "project.pth").write_text("\n".join(installed_packages()))
    fetch(directory, python, "-m", "pip", "install", "-q", "-r", "requirements.txt")
    assert "2 passed" in run(directory, python, *PYTEST)


@TAKES_LONG
@pytest.mark.java
def test_the_example_in_java_passes(tmp_path: Path) -> None:
    reason = why_no_java()
    if reason is not None or shutil.which("mvn") is None:
        pytest.skip(reason or "mvn not found")
    directory = copy_of("java-junit", tmp_path)
    # Maven fetches what runs the tests only when one is to be run. There is none of this name.
    no_test = ("-Dtest=InvoicesTest#none", "-Dsurefire.failIfNoSpecifiedTests=false")
    fetch(directory, "mvn", "-q", "-B", "test", *no_test)
    assert "Tests run: 2, Failures: 0, Errors: 0" in run(directory, "mvn", "-B", "-o", "test")


@TAKES_LONG
@pytest.mark.slow
def test_the_example_in_go_passes(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("go not found")
    directory = copy_of("go-franz", tmp_path)
    fetch(directory, "go", "mod", "download")
    assert run(directory, "go", "test", "./...").startswith("ok")


@TAKES_LONG
@pytest.mark.slow
def test_the_example_in_javascript_passes(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm not found")
    directory = copy_of("node-kafkajs", tmp_path)
    fetch(directory, "npm", "install", "--no-audit", "--no-fund")
    assert "pass 1" in run(directory, "npm", "test")
