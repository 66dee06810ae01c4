"""What the broker and a recovering process say to each other, over the process's stdin and stdout.

    broker    RecoveryTask                          when the last one has ended
    process   Progress...                           while it works on it
              Recovered | RecoveryFailed            that was the task

Each message is its length in four bytes and a pickle: both sides are of the same program.
"""

from __future__ import annotations

import pickle
import struct
from typing import BinaryIO, NamedTuple, TypeAlias

from ..storage.found_log import RecoveryTask
from ..storage.producer_recovery import RecentBatches

LENGTH = struct.Struct(">I")


class Progress(NamedTuple):
    """A line for the broker's log."""

    line: str


class Recovered(NamedTuple):
    """The log's files are as a clean stop leaves them, but not synced."""

    recent: RecentBatches


class RecoveryFailed(NamedTuple):
    """The log could not be recovered. `error`: what the operating system said, where it did."""

    reason: str
    error: OSError | None = None


Ending: TypeAlias = Recovered | RecoveryFailed
FromProcess: TypeAlias = Progress | Ending


def pack(message: RecoveryTask | FromProcess) -> bytes:
    """The bytes of a message."""
    content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(content)) + content


def read_task(stream: BinaryIO) -> RecoveryTask:
    """The next message of the broker; waits for it. Raises EOFError where the broker is gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    (length,) = LENGTH.unpack(head)
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    task: RecoveryTask = pickle.loads(content)
    return task
