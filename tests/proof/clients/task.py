"""What the clients have in common: arguments, topics, and the lines that they write (history.py).

A program has one of these roles until it gets SIGTERM, or its client fails; then it is started
again, with a number of its own (`life`).

    write      it sends to KEPT, idempotent
    renew      it sends to RENEWED, which others delete and create, without idempotence
    read       it reads all of KEPT and MOVED from the beginning
    group      a member of a group that reads them and commits its offsets
    transact   the same, which in a transaction also sends to MOVED, and aborts some of them
    watch      it asks for offsets and members of groups (librdkafka only)
    share      a member of a share group of KEPT that accepts and releases (Java only)

A value names its writer. Every error of a send leaves its outcome unknown.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Iterable
from random import Random
from typing import Any, NamedTuple

KEPT, MOVED, RENEWED = "kept", "moved", "renewed"
PARTITIONS = {KEPT: 3, MOVED: 2, RENEWED: 1}
READ = [(topic, partition) for topic in (KEPT, MOVED) for partition in range(PARTITIONS[topic])]

BURST = 3
PAUSE_S = 0.1
UNANSWERED = 200
POLL_S = 0.2
WATCH_S = 0.5
MAX_POLLED = 40
MAX_SENT = 4
ABORTED_SHARE = 0.15
SESSION_MS = 6000
HEARTBEAT_MS = 500
REQUEST_MS = 5000
TIMEOUT_S = 20.0
TRANSACTION_MS = 10_000
BACKOFF_MS = 50
LONGEST_BACKOFF_MS = 200

Row = list[Any]  # topic, partition, and what follows


class Task(NamedTuple):
    """The arguments, in this order."""

    bootstrap: str
    name: str
    life: str
    role: str
    group: str
    protocol: str  # "eager", "cooperative" or "consumer"

    @property
    def process(self) -> str:
        return f"{self.name}.{self.life}"


class Recorder:
    """Writes lines; each in one piece, so that a killed process leaves at most a part of one."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._last = 0

    def note(self, kind: str, **fields: Any) -> None:
        """An operation of one moment."""
        self.begin(kind, step="ok", **fields)

    def begin(
        self, kind: str, *, at: int | None = None, step: str = "invoke", **fields: Any
    ) -> int:
        """Returns its id."""
        self._last += 1
        self.add(self._last, step, at=at, kind=kind, **fields)
        return self._last

    def add(self, number: int, step: str, *, at: int | None = None, **fields: Any) -> None:
        """A further line of an operation."""
        at = at or time.monotonic_ns()
        line = json.dumps({"id": number, "at": at, "is": step, **fields})
        os.write(self._descriptor, line.encode() + b"\n")


class Values:
    """The records that a process sends."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._count = 0
        self.random = Random(task.process)

    def next(self, topic: str) -> Row:
        """Topic, partition, value, and no offset yet."""
        self._count += 1
        partition = self.random.randrange(PARTITIONS[topic])
        return [topic, partition, f"{self._task.process}-{self._count}", None]

    def some(self, topic: str) -> list[Row]:
        return [self.next(topic) for _ in range(self.random.randint(1, MAX_SENT))]


def until_terminated() -> threading.Event:
    """Set by SIGTERM."""
    event = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: event.set())
    return event


def ends(polls: Iterable[Row]) -> dict[tuple[str, int], int]:
    """The offsets to commit."""
    return {(topic, partition): offset + 1 for topic, partition, offset, _ in polls}


def starts(polls: Iterable[Row]) -> dict[tuple[str, int], int]:
    """From where to read again."""
    found: dict[tuple[str, int], int] = {}
    for topic, partition, offset, _ in polls:
        found.setdefault((topic, partition), offset)
    return found


def rows(offsets: dict[tuple[str, int], int]) -> list[Row]:
    return [[*place, offset] for place, offset in offsets.items()]
