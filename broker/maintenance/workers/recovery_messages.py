"""What the broker and a recovering process say to each other, over the process's stdin and stdout.

    broker    RecoveryTask                          when the last one has ended
    process   Progress...                           while it works on it
              Recovered | RecoveryFailed            that was the task

How they are sent: process_pipe.py.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from odradek.storage.recovering.producer_recovery import RecentBatches


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
