"""Commands of `odradek pipeline` in processes of their own, which may be killed."""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.broker_process import SERVE

LIMIT_SECONDS = 180.0


class Ended(NamedTuple):
    """The result of a command; the code of one that was killed is that of the signal."""

    command: str
    code: int
    out: str
    err: str

    def lines(self, label: str) -> list[str]:
        """The lines `label: …` of both streams, without the label and the time before it."""
        start = f"{label}: "
        all_lines = (self.out + self.err).splitlines()
        return [line.partition(start)[2] for line in all_lines if start in line]

    def __str__(self) -> str:
        return f"{self.command}: exit code {self.code}\n{self.out}{self.err}"


class PipelineCommand:
    """Starts `odradek pipeline NAME …`; what it prints goes to files below `directory`."""

    _count = 0

    def __init__(self, directory: Path, name: str, *options: str) -> None:
        PipelineCommand._count += 1
        self.text = " ".join([name, *options])
        self._stem = directory / f"{PipelineCommand._count:05}-{name}"
        self._began = time.monotonic()
        with self._file("out").open("wb") as out, self._file("err").open("wb") as err:
            self._process = subprocess.Popen(
                [SERVE[0], "pipeline", name, *options],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def said(self, stream: str) -> str:
        """What it has printed so far."""
        return self._file(stream).read_text(errors="replace")

    def send_signal(self, number: int) -> None:
        """Send a signal, if it has not ended."""
        self._process.send_signal(number)

    def wait(self) -> Ended:
        """Wait for its end."""
        code = self._process.wait(LIMIT_SECONDS)
        return Ended(self.text, code, self.said("out"), self.said("err"))

    def kill(self) -> Ended:
        """End it by SIGKILL, if it has not ended."""
        self._process.kill()
        return self.wait()

    def _file(self, stream: str) -> Path:
        return self._stem.with_suffix(f".{stream}")


def run_pipeline(directory: Path, name: str, *options: str) -> Ended:
    """Run a command to its end."""
    return PipelineCommand(directory, name, *options).wait()


def option(name: str, values: Sequence[object]) -> list[str]:
    """The option as often as there are values."""
    return [part for value in values for part in (name, str(value))]
