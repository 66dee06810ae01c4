"""What the copiers have in common: their arguments, the records they write, and what they report.

A copier copies until its client fails, and ends then: it is started again, and continues where its
committed offsets are. It says one line for each step of which it is sure:

    committed NAME    the client says that this transaction is committed
    aborted NAME      the same for an abort: the copier aborts some transactions without need
    holding NAME      it has reached the step at which it was told to wait; an input line ends that
    failed ERROR      the client's error that ends the copier
    fenced ERROR      the same; the client says that another producer has taken over

A copier begins its producer before its consumer: the end of the transaction that its predecessor
left open must be decided before the committed offsets are read.
"""

import random
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

COPY_PARTITIONS = 2
MAX_RECORDS = 20
ABORTED_SHARE = 0.1
POLL_MS = 200
SESSION_MS = 3000
HEARTBEAT_MS = 500
REQUEST_MS = 10_000
TIMEOUT_MS = 30_000
TRANSACTION_MS = 10_000
BACKOFF_MS = 50
LONGEST_BACKOFF_MS = 200

STEPS = ("records", "offsets", "end")


class Task(NamedTuple):
    """The arguments, in this order. The name is the group's and the transactional id."""

    bootstrap: str
    source: str
    target: str
    name: str
    protocol: str  # of the group
    hold: str  # the step before which to wait once: one of STEPS, or "never"


class Origin(NamedTuple):
    """A record of the source."""

    partition: int
    offset: int
    value: bytes


class Transaction:
    """The records of one transaction, and what is reported of it."""

    _began_ns = time.time_ns()  # tells this process from earlier ones: a process id may come again
    _count = 0
    _has_held = False

    def __init__(self, task: Task, origins: Sequence[Origin]) -> None:
        Transaction._count += 1
        self.name = f"{task.name}-{Transaction._began_ns}-{Transaction._count}"
        self.must_abort = random.random() < ABORTED_SHARE
        self._task = task
        self._origins = origins

    def records(self) -> list[tuple[int, bytes]]:
        """Partition and value of each record; all records of the source go the same way."""
        size = len(self._origins)
        return [
            (
                int(value) % COPY_PARTITIONS,
                f"{partition} {offset} {int(value)} {self.name} {size}".encode(),
            )
            for partition, offset, value in self._origins
        ]

    def ends(self) -> dict[int, int]:
        """The offset to commit, by partition of the source."""
        return {each.partition: each.offset + 1 for each in self._origins}

    def starts(self) -> dict[int, int]:
        """The offset from which to read again after an abort, by partition of the source."""
        return {each.partition: each.offset for each in reversed(self._origins)}

    def wait_before(self, step: str) -> None:
        """Wait for a line of input, if this is the step before which to wait."""
        if self._task.hold == step and not Transaction._has_held:
            Transaction._has_held = True
            self.must_abort = False
            report("holding", self.name)
            sys.stdin.readline()

    def report_end(self) -> None:
        """The client says that the end is done."""
        report("aborted" if self.must_abort else "committed", self.name)


def batch_size() -> int:
    """How many records the next transaction may have."""
    return random.randint(1, MAX_RECORDS)


def report(kind: str, what: str) -> None:
    """Write one line."""
    sys.stdout.write(f"{kind} {what}\n")
    sys.stdout.flush()
