"""The processes whose history is checked: started, stopped, killed, and started again."""

import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from tests.crash.copiers.reader import Reader
from tests.support.java_program import compiled_program
from tests.support.kafka_jars import kafka_jars

from .clients.task import PARTITIONS, TIMEOUT_S, Recorder
from .history import FINAL

ROOT = Path(__file__).parents[2]
END_SECONDS = 10.0
SILENCE_SECONDS = 60.0
BEGIN_SECONDS = 600.0

logger = logging.getLogger(__name__)


def _java() -> list[str]:
    """Raises LookupError."""
    jars = kafka_jars()
    if jars is None:
        raise LookupError("no jars of Apache Kafka's clients")
    return compiled_program(jars, "HistoryClient.java")


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-W", "ignore", "-m", f"tests.proof.clients.{module}"]


class Client(NamedTuple):
    """A client with a role, and how many processes have it in its group."""

    library: str
    role: str
    protocol: str = "none"
    processes: int = 1

    @property
    def group(self) -> str:
        return f"{self.library}-{self.role}-{self.protocol}"


COMMANDS = {"confluent": _python("confluent"), "aio": _python("aio"), "java": _java}
ORDINARY = (Client("confluent", "renew"), Client("confluent", "read"))
# Each beside a broker of its own: a machine with two cores cannot run all of them at a time.
CASTS = {
    "mixed": (
        *ORDINARY,
        Client("confluent", "write"),
        Client("confluent", "transact", "consumer", 2),
        Client("aio", "transact", "eager"),
    ),
    "librdkafka": (
        *ORDINARY,
        Client("confluent", "write"),
        Client("confluent", "group", "eager", 2),
        Client("confluent", "transact", "cooperative", 2),
    ),
    "aiokafka": (
        *ORDINARY,
        Client("aio", "write"),
        Client("aio", "group", "eager", 2),
        Client("aio", "transact", "eager"),
    ),
    "java": (
        *ORDINARY,
        Client("java", "write"),
        Client("java", "group", "cooperative", 2),
        Client("java", "transact", "consumer", 2),
    ),
    "java-classic-and-share": (
        *ORDINARY,
        Client("java", "write"),
        Client("java", "transact", "eager"),
        Client("java", "share", "share", 2),
    ),
}


@cache
def _dies_with_parent() -> Sequence[str]:
    """What starts a program that the system kills when this process ends, where that can be had."""
    found = shutil.which("setpriv")
    return () if found is None else (found, "--pdeathsig", "KILL")


class Member:
    """One process after another, each with a history of its own."""

    def __init__(
        self, client: Client, number: int, bootstrap: str, directory: Path, group: str | None = None
    ) -> None:
        self.client = client
        self._group = group or client.group
        self.name = f"{client.group}-{number}"
        self.lives = 0
        self._bootstrap = bootstrap
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.is_running:
            return
        self.lives += 1
        client, life = self.client, str(self.lives)
        command = COMMANDS[client.library]()
        arguments = (self._bootstrap, self.name, life, client.role, self._group, client.protocol)
        with self._history(self.lives).open("wb") as out, self.complaints.open("ab") as complaints:
            self._process = subprocess.Popen(
                [*_dies_with_parent(), *command, *arguments],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=complaints,
            )

    @property
    def has_worked(self) -> bool:
        """Whether it has come to the end of an operation, in any life."""
        said = b"".join(self._history(life + 1).read_bytes() for life in range(self.lives))
        return b'"is": "ok"' in said or b'"is":"ok"' in said

    @property
    def silent_s(self) -> float:
        """For how long it has written nothing."""
        return time.time() - self._history(self.lives).stat().st_mtime

    def _history(self, life: int) -> Path:
        return self._directory / f"{self.name}.{life}.jsonl"

    @property
    def complaints(self) -> Path:
        return self._directory / f"{self.name}.err"

    def send(self, number: signal.Signals) -> None:
        """Does nothing if it has ended."""
        if self._process is not None:
            self._process.send_signal(number)

    def wait(self, seconds: float) -> None:
        """Wait for its end; it is killed then."""
        if self._process is None:
            return
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            self._process.wait()


class Crowd:
    """All members."""

    def __init__(self, clients: Sequence[Client], bootstrap: str, directory: Path) -> None:
        """Raises LookupError if one of them cannot run here."""
        for library in {client.library for client in clients}:
            COMMANDS[library]()
        self.directory = directory
        self._bootstrap = bootstrap
        self.members = [
            Member(client, number, bootstrap, directory)
            for client in clients
            for number in range(client.processes)
        ]
        groups = {each.group for each in clients if each.role in ("group", "transact")}
        watcher = Client("confluent", "watch")
        self.members.append(Member(watcher, 0, bootstrap, directory, ",".join(sorted(groups))))

    def recorder(self, process: str) -> Recorder:
        """For a history that this process writes itself."""
        path = self.directory / f"{process}.jsonl"
        return Recorder(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND))

    def keep_running(self) -> None:
        """Start those that have ended, also because they were silent for long, and so killed."""
        for member in self.members:
            if member.is_running and member.silent_s > SILENCE_SECONDS:
                member.send(signal.SIGKILL)  # librdkafka #5456: it may hang for good
                member.wait(END_SECONDS)
            member.start()

    def begin(self) -> None:
        """Start all, and wait until each has done something."""
        deadline = time.monotonic() + BEGIN_SECONDS
        while True:
            for member in self.members:
                member.start()
            if all(each.has_worked for each in self.members):
                return
            assert time.monotonic() < deadline, self.complaints()
            time.sleep(0.05)

    def one(self, chance: random.Random) -> Member:
        return chance.choice(self.members)

    def end(self) -> None:
        """Ask all to end, and wait."""
        for number in (signal.SIGCONT, signal.SIGTERM):
            for member in self.members:
                member.send(number)
        for member in self.members:
            member.wait(END_SECONDS)

    def kill(self) -> None:
        for member in self.members:
            member.send(signal.SIGKILL)
            member.wait(END_SECONDS)

    def read_all(self) -> None:
        """Read what is there in the end. No transaction is open, and nobody writes."""
        settings = {"bootstrap.servers": self._bootstrap, "log_level": 0}
        for member in self.members:
            if member.client.role == "transact":
                producer = Producer({**settings, "transactional.id": member.name})
                producer.init_transactions(TIMEOUT_S)
        reader = Reader(self._bootstrap, PARTITIONS, "read_committed")
        reader.read_to_end()
        recorder = self.recorder(FINAL)
        for topic, view in reader.views.items():
            for partition, found in view.items():
                polls = [[topic, partition, each.offset, each.value.decode()] for each in found]
                recorder.note("work", polls=polls)

    def complaints(self) -> Counter[str]:
        """The errors that have ended clients."""
        return Counter(
            line.split(": ", 1)[-1][:120]
            for member in self.members
            if member.complaints.exists()
            for line in member.complaints.read_text().splitlines()
        )
