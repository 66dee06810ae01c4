"""What the broker and a walking process say to each other, over the process's stdin and stdout.

    broker    WalkTask, and the bytes of the batch       when the last one has ended
    process   Walked | TooLong | Refused | WalkFailed    that was the task

How they are sent: process_pipe.py. The batch follows its task as it is: to pickle a megabyte takes
the event loop half a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from odradek.protocol.errors import ErrorCode
from odradek.storage.record_walk import WalkLimits


class WalkTask(NamedTuple):
    """A walk (see RecordWalks.run), how far it may go, and how many bytes of a batch follow."""

    walk: Callable[..., object]
    limits: WalkLimits
    batch_bytes: int


class Walked(NamedTuple):
    """It came to the end."""

    found: object


class TooLong(NamedTuple):
    """It came to its limits."""

    reason: str


class Refused(NamedTuple):
    """The client is at fault; the fields of ApiError and RecordsRefusedError."""

    code: ErrorCode
    message: str
    record_errors: tuple[tuple[int, str], ...] = ()


class WalkFailed(NamedTuple):
    """Nobody has foreseen this."""

    reason: str


Ending: TypeAlias = Walked | TooLong | Refused | WalkFailed
