"""A Java program that lies beside this file, run for as long as it is asked: line in, line out."""

import atexit
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.java_tools import JAVA_TOOLS, JavaTools, why_no_java
from tests.support.line_program import LIMIT_SECONDS, LineProgram

COMPILE_SECONDS = 120


def java_answers(source: str, lines: Sequence[str], tools: JavaTools = JAVA_TOOLS) -> list[str]:
    """The lines with which a program answers these, once run; skips the test without Java."""
    reason = why_no_java()
    if reason:
        pytest.skip(reason)
    done = subprocess.run(
        [*tools.java(), str(Path(__file__).with_name(source))],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=4 * LIMIT_SECONDS,
    )
    return done.stdout.splitlines()


@functools.cache
def compiled_program(jars: Path, source: str) -> list[str]:
    """The command of a program that is started often; its classes last as long as this process.

    Raises LookupError where there is no compiler.
    """
    if shutil.which("javac") is None:
        raise LookupError(f"javac not found: {source} cannot be compiled")
    directory = Path(tempfile.mkdtemp(prefix="java-program-"))
    atexit.register(shutil.rmtree, directory)
    path = Path(__file__).with_name(source)
    subprocess.run(
        ["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(directory), str(path)],
        check=True,
        timeout=COMPILE_SECONDS,
    )
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx96m"]
    level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    return ["java", *quick, level, "-cp", f"{directory}:{jars}/*", path.stem]


class JavaProgram(LineProgram):
    """A program of this directory, compiled when it starts."""

    def __init__(
        self,
        source: str,
        *arguments: str,
        options: tuple[str, ...] = (),
        tools: JavaTools = JAVA_TOOLS,
    ) -> None:
        super().__init__([*tools.java(*options), Path(__file__).with_name(source), *arguments])
