"""A Java program that lies beside this file, run for as long as it is asked: line in, line out."""

import atexit
import functools
import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support.java_tools import JAVA_TOOLS, JavaTools, why_no_java

LIMIT_SECONDS = 30.0
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


class JavaProgram:
    """One process, started at once; it ends with its `with`, because its input does."""

    def __init__(
        self,
        source: str,
        *arguments: str,
        options: tuple[str, ...] = (),
        tools: JavaTools = JAVA_TOOLS,
    ) -> None:
        self._source = source
        self._process = subprocess.Popen(
            [*tools.java(*options), str(Path(__file__).with_name(source)), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Close its input, and wait. Raises TimeoutExpired; it is killed then."""
        try:
            self._process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise

    def ask(self, line: str) -> str:
        """The line with which it answers one."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        to.write(line.encode() + b"\n")
        to.flush()
        answer = back.readline()
        assert answer, f"{self._source} ended: see standard error"
        return answer.decode().rstrip("\n")

    def ask_json(self, question: dict[str, Any]) -> dict[str, Any]:
        """The same for a question and an answer that are JSON objects."""
        answer: dict[str, Any] = json.loads(self.ask(json.dumps(question)))
        return answer

    def read(self, size: int) -> bytes:
        """What comes behind an answer that told of so many bytes."""
        assert self._process.stdout is not None
        return self._process.stdout.read(size)
