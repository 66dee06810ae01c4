"""Apache Kafka's own command-line tools, one process each.

They start in a third of their usual time: the first compiler only, no parallel collector, and an
archive of the loaded classes (AppCDS) that is made once and kept beside the jars' cache. So does
the broker, with an archive of its own.
"""

import contextlib
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.kafka_jars import BROKER_VERSION, kafka_jars, why_no_jars

LIMIT_SECONDS = 120.0
TOOLS = "org.apache.kafka.tools"


@functools.cache
def why_no_java() -> str | None:
    """Why Kafka's tools cannot run here, or None: the reason a test gives for being skipped."""
    if shutil.which("java") is None:
        return "java not found: Apache Kafka's own tools cannot run"
    return why_no_jars() if kafka_jars() is None else None


class ToolFailedError(AssertionError):
    """A tool ended with another exit code than 0; the message is all that it wrote."""


class JavaTools:
    """Starts the tools' classes; `run` waits for them, `popen` gives the process."""

    def __init__(self, jars: Callable[[], Path | None] = kafka_jars) -> None:
        self._jars = jars

    def java(self, *options: str, lives_long: bool = False) -> list[str]:
        """The command up to the class name; one that `lives_long` may take its time to warm up."""
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        quick = ["-Xlog:disable", *([] if lives_long else quick)]
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        return ["java", *quick, level, *options, "-cp", self._class_path]

    @functools.cached_property
    def _class_path(self) -> str:
        # Named one by one: the archive of classes holds only for the very same class path.
        jars = self._jars()
        assert jars is not None, why_no_jars()
        return ":".join(str(jar) for jar in sorted(jars.glob("*.jar")))

    def class_archive(self, name: str, make: Callable[[str], object]) -> list[str]:
        """The option that names an archive of loaded classes.

        At first use of all, `make` runs a JVM with the option that it is given, to its clean end.
        """
        jars = self._jars()
        assert jars is not None, why_no_jars()
        base = jars if os.access(jars, os.W_OK) else Path(tempfile.gettempdir())
        archive = base / f"{name}-{os.getuid()}.jsa"
        if not archive.exists():
            making = archive.with_suffix(f".{os.getpid()}")
            make(f"-XX:ArchiveClassesAtExit={making}")
            if making.exists():
                making.rename(archive)
        return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []

    @functools.cached_property
    def _archive(self) -> list[str]:
        return self.class_archive("tools", self._make_archive)

    def _make_archive(self, option: str) -> None:
        # A tool that connects nowhere still loads what all of them load.
        arguments = ["--bootstrap-server", "127.0.0.1:9", "--list"]
        with _settings("request.timeout.ms=500", "default.api.timeout.ms=500") as file:
            subprocess.run(
                [
                    *(*self.java(option), f"{TOOLS}.TopicCommand"),
                    *(*arguments, "--command-config", str(file)),
                ],
                check=False,
                capture_output=True,
                timeout=LIMIT_SECONDS,
            )

    def command(self, tool: str, *arguments: str) -> list[str]:
        """The whole command line of a tool: `TopicCommand`, or a class with its package."""
        name = tool if tool.startswith(("org.", "kafka.")) else f"{TOOLS}.{tool}"
        return [*self.java("-Xmx512m", *self._archive), name, *arguments]

    def run(
        self, tool: str, *arguments: str, stdin: str = "", limit_s: float = LIMIT_SECONDS
    ) -> str:
        """What the tool wrote, both streams; raises ToolFailedError, or TimeoutExpired."""
        done = subprocess.run(
            self.command(tool, *arguments),
            check=False,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit_s,
        )
        if done.returncode != 0:
            raise ToolFailedError(f"{tool} ended with {done.returncode}:\n{done.stdout}")
        return done.stdout

    def popen(self, tool: str, *arguments: str) -> "subprocess.Popen[str]":
        """A tool that goes on running: its output is a pipe, and the caller ends it."""
        return subprocess.Popen(
            self.command(tool, *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


@contextlib.contextmanager
def _settings(*lines: str) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile("w", suffix=".properties") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        yield Path(file.name)


@functools.cache
def java_tools_of(version: str) -> JavaTools:
    """The tools of a version of Apache Kafka."""
    return JavaTools(functools.partial(kafka_jars, version))


JAVA_TOOLS = java_tools_of(BROKER_VERSION)
