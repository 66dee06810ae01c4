"""Many runs of Kafka's command-line tools in one JVM: WarmTools.java.

A tool that leaves by itself costs a second of Java's start; here it costs what it does. The tools
see one process, so only such may be run as leave nothing behind in it.
"""

from tests.support.java_program import JavaProgram
from tests.support.java_tools import TOOLS


class WarmTools(JavaProgram):
    """Runs one tool after the other; ends with its `with`."""

    def __init__(self) -> None:
        super().__init__("WarmTools.java", options=("-Xmx512m",))

    def run(self, tool: str, *arguments: str) -> tuple[int, str]:
        """The exit code, and what the tool wrote to both streams."""
        code, size = map(int, self.ask("\t".join((f"{TOOLS}.{tool}", *arguments))).split())
        return code, self.read(size).decode()
