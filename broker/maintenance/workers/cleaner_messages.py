"""What the broker and a cleaning process say to each other, over the process's stdin and stdout.

    broker    CleanerSettings                              once
    process   Ready | Unusable                             its answer to that
    broker    CleaningTask                                 when the last one has ended
              Rate                                         at any time
    process   CleanedGroup..., Moved...                    while it works on a task
              CleaningResult | SplitUp | CleaningFailed    that was the task

How they are sent: process_pipe.py.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from odradek.storage.cleaning.task import CleanedGroup, CleaningResult, CleaningTask


class CleanerSettings(NamedTuple):
    """How much memory a process may take."""

    dedupe_buffer_bytes: int
    load_factor: float
    io_buffer_bytes: int


class Rate(NamedTuple):
    """So many bytes per second may be read and written."""

    bytes_per_second: float


class Ready(NamedTuple):
    """The process has started, and waits for its first task."""


class Unusable(NamedTuple):
    """No log can be cleaned with these settings."""

    reason: str


class Moved(NamedTuple):
    """Bytes read and written since the last one: a sign of life."""

    size_bytes: int


class SplitUp(NamedTuple):
    """The groups were a segment split in two or more; now the log can be cleaned."""

    reason: str


class CleaningFailed(NamedTuple):
    """The round has ended early. `error`: what the operating system said, where it did.

    `traceback` is there for what nobody expected.
    """

    reason: str
    error: OSError | None = None
    traceback: str | None = None


ToProcess: TypeAlias = CleanerSettings | CleaningTask | Rate
Ending: TypeAlias = CleaningResult | SplitUp | CleaningFailed
FromProcess: TypeAlias = Ready | Unusable | CleanedGroup | Moved | Ending
