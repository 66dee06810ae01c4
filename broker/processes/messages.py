"""The messages between the broker and its worker processes. process_pipe.py has their framing.

    direction      cleaner_process
    to it          CleanerSettings                              once, at start
    from it        Ready | Unusable                             the reply to CleanerSettings
    to it          CleaningTask                                 when it is idle
                   Rate                                         at any time
    from it        CleanedGroup..., Moved...                    while it works on a task
                   CleaningResult | SplitUp | CleaningFailed    the task has ended

    direction      recovery_process
    to it          RecoveryTask                                 when it is idle
    from it        Progress...                                  while it works on a task
                   Recovered | RecoveryFailed                   the task has ended

    direction      walk_process
    to it          WalkTask, then the bytes of the batch        when it is idle
    from it        Walked | TooLong | Refused | WalkFailed      the task has ended

The batch is not part of the pickled WalkTask: pickling a megabyte takes the event loop half a
millisecond.

No message may be defined in a module that is run with `python -m`: a pickle names the module of
each class, and there that name is `__main__`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:  # a worker process must not load what only the other two need: 3 MB
    from odradek.storage.cleaning.task import CleanedGroup, CleaningResult, CleaningTask
    from odradek.storage.record_walk import WalkLimits
    from odradek.storage.recovering.producer_recovery import RecentBatches

# --- cleaner_process


class CleanerSettings(NamedTuple):
    """How much memory a cleaning process may use."""

    dedupe_buffer_bytes: int
    load_factor: float
    io_buffer_bytes: int


class Rate(NamedTuple):
    """The limit on bytes read and written per second; see Throttle for zero and below."""

    bytes_per_second: float


class Ready(NamedTuple):
    """The process has started and waits for its first task."""


class Unusable(NamedTuple):
    """No log can be cleaned with these settings."""

    reason: str


class Moved(NamedTuple):
    """Bytes read and written since the last such message. Also shows that the process works."""

    size_bytes: int


class SplitUp(NamedTuple):
    """The round split a segment, sent as one CleanedGroup. The next round can clean the log."""

    reason: str


class CleaningFailed(NamedTuple):
    """The round has failed.

    `error` is the error of the operating system, if there was one. `traceback` is set for an
    exception that no code expects.
    """

    reason: str
    error: OSError | None = None
    traceback: str | None = None


ToCleaner: TypeAlias = "CleanerSettings | CleaningTask | Rate"
CleaningEnding: TypeAlias = "CleaningResult | SplitUp | CleaningFailed"
FromCleaner: TypeAlias = "Ready | Unusable | CleanedGroup | Moved | CleaningEnding"


# --- recovery_process


class Progress(NamedTuple):
    """A line for the broker's log."""

    line: str


class Recovered(NamedTuple):
    """The log's files are as after a clean stop, but not synced."""

    recent: RecentBatches


class RecoveryFailed(NamedTuple):
    """The log could not be recovered. `error`: of the operating system, if there was one."""

    reason: str
    error: OSError | None = None


RecoveryEnding: TypeAlias = Recovered | RecoveryFailed
FromRecovery: TypeAlias = Progress | RecoveryEnding


# --- walk_process


class WalkTask(NamedTuple):
    """A walk (see RecordWalks.run), its limits, and how many bytes of a batch follow."""

    walk: Callable[..., object]
    limits: WalkLimits
    batch_bytes: int


class Walked(NamedTuple):
    """The walk is complete; `result` is what it returned."""

    result: object


class TooLong(NamedTuple):
    """The walk exceeded its limits."""

    reason: str


class Refused(NamedTuple):
    """The batch is invalid. The fields of ApiError and RecordsRefusedError."""

    code: ErrorCode
    message: str
    record_errors: tuple[tuple[int, str], ...] = ()


class WalkFailed(NamedTuple):
    """The process died, or raised an exception that no code expects."""

    reason: str


WalkEnding: TypeAlias = Walked | TooLong | Refused | WalkFailed
