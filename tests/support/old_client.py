"""The Java clients of Kafka 0.9 and 0.10: OldClient.java, run from its source with their jars."""

import shutil
import subprocess
from pathlib import Path

from tests.support.kafka_jars import old_clients_jars, why_no_jars

PROGRAM = Path(__file__).with_name("OldClient.java")
LIMIT_SECONDS = 60.0


class OldClient:
    """One version of kafka-clients; its commands are those of OldClient.java."""

    def __init__(self, version: str) -> None:
        self.version = version

    def why_not(self) -> str | None:
        """Why it cannot run here, or None."""
        if shutil.which("java") is None or old_clients_jars(self.version) is None:
            return why_no_jars()
        return None

    def run(self, bootstrap: str, *commands: str) -> list[str]:
        """The lines that it writes; raises AssertionError when a command fails."""
        done = subprocess.run(
            self._command(bootstrap),
            check=False,
            input="".join(f"{command}\n" for command in commands),
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
        )
        lines = done.stdout.splitlines()
        failed = done.returncode or any(line.startswith("error") for line in lines)
        assert not failed, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return lines

    def popen(self, bootstrap: str) -> "subprocess.Popen[str]":
        """The client with its pipes, for commands that go on."""
        return subprocess.Popen(
            self._command(bootstrap),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def _command(self, bootstrap: str) -> list[str]:
        jars = old_clients_jars(self.version)
        assert jars is not None, why_no_jars()
        options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable", "-Xmx256m"]
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
        return ["java", *options, level, "-cp", f"{jars}/*", str(PROGRAM), bootstrap]
