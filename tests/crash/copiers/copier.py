"""A copier as a test sees it: processes of one client, and what they report."""

import signal
import subprocess
from collections import defaultdict
from pathlib import Path

from tests.crash.copiers.clients import Client

ROOT = Path(__file__).parents[3]


class Copier:
    """At most one process that copies, and any number that are stopped or have been fenced."""

    def __init__(self, client: Client, bootstrap: str, source: str, directory: Path) -> None:
        self.client = client
        self.name = client.name
        self.target = f"to-{client.name}"
        self._arguments = [bootstrap, source, self.target, self.name, client.protocol]
        self._command = client.command()
        self._said = directory / f"{self.name}.txt"
        self._warned = directory / f"{self.name}.err"
        self._said.touch()
        self._read_bytes = 0
        self._reports: defaultdict[str, list[str]] = defaultdict(list)
        self._process: subprocess.Popen[bytes] | None = None
        self._others: list[subprocess.Popen[bytes]] = []

    @property
    def is_running(self) -> bool:
        """Whether the process that copies has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self, hold: str = "never") -> None:
        """Start the process that copies, unless it runs; it waits before the step `hold`."""
        if self.is_running:
            return
        self.kill()
        with self._said.open("ab") as out, self._warned.open("ab") as err:
            self._process = subprocess.Popen(
                [*self._command, *self._arguments, hold],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
            )

    def kill(self) -> None:
        """kill -9 of the process that copies, if there is one."""
        if self._process is not None:
            _end(self._process)
        self._process = None

    def freeze(self) -> None:
        """Stop the process that copies, as if its machine hung; another may be started."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)
            self._others.append(self._process)
        self._process = None

    def thaw(self) -> None:
        """Let all stopped processes go on; one that waits before a step waits no more."""
        for process in self._others:
            assert process.stdin is not None
            process.stdin.close()
            process.send_signal(signal.SIGCONT)

    def kill_others(self) -> None:
        """kill -9 of the processes that were stopped once."""
        for process in self._others:
            _end(process)
        self._others.clear()

    def close(self) -> None:
        """End all processes."""
        self.kill()
        self.kill_others()

    # -- what it has said --------------------------------------------------------------------------

    def reports(self, kind: str) -> list[str]:
        """What all processes so far have reported of this kind, see task.py."""
        with self._said.open("rb") as file:
            file.seek(self._read_bytes)
            lines = file.read().splitlines(keepends=True)
        for line in lines:
            if not line.endswith(b"\n"):
                break  # a process is writing it, or was killed while it was
            self._read_bytes += len(line)
            kind_of_line, _, what = line.decode().rstrip("\n").partition(" ")
            self._reports[kind_of_line].append(what)
        return self._reports[kind]

    def complaints(self) -> str:
        """What they wrote to standard error: it is empty when the program is sound."""
        return self._warned.read_text()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
