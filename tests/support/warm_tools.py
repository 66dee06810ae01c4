"""Many runs of Kafka's command-line tools in one JVM: WarmTools.java.

A tool that leaves by itself costs a second of Java's start; here it costs what it does. The tools
see one process, so only such may be run as leave nothing behind in it.
"""

import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.java_tools import JAVA_TOOLS, TOOLS

PROGRAM = Path(__file__).with_name("WarmTools.java")
LIMIT_SECONDS = 20.0


class WarmTools:
    """Runs one tool after the other; ends with its `with`."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [*JAVA_TOOLS.java("-Xmx512m"), str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise

    def run(self, tool: str, *arguments: str) -> tuple[int, str]:
        """The exit code, and what the tool wrote to both streams."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None
        assert back is not None
        to.write("\t".join((f"{TOOLS}.{tool}", *arguments)).encode() + b"\n")
        to.flush()
        line = back.readline()
        assert line, "the JVM of the tools ended: see standard error"
        code, size = map(int, line.split())
        return code, back.read(size).decode()
