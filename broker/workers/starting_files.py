"""The files of a worker, which send heartbeats while it starts.

A start opens the logs and blocks the event loop meanwhile. After a crash that may take long,
because batches are read and checked. So the loop cannot send heartbeats, and a thread that did
would hide a hang. Nearly all that a start does, it does with files: it finds, opens and creates
logs, and reads them in pieces of at most a megabyte. So each call that has returned is progress. A
call that does not return is none, nor is a loop without calls: the worker is then killed
(heartbeats.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from odradek.storage.files import Files

P = ParamSpec("P")
T = TypeVar("T")


def _noted(
    call: Callable[Concatenate[Files, P], T],
) -> Callable[Concatenate[StartingFiles, P], T]:
    """A method of Files after which progress is noted."""

    @wraps(call)
    def noted(files: StartingFiles, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result = call(files, *args, **kwargs)
        files.note_progress()
        return result

    return noted


class StartingFiles(Files):
    """Files that call `send_heartbeat` in each interval with progress, until `started`."""

    def __init__(
        self,
        send_heartbeat: Callable[[], object],
        interval_ms: int,
        timer_ms: Callable[[], int],
    ) -> None:
        """`timer_ms` is a clock that never jumps."""
        self._send_heartbeat = send_heartbeat
        self._interval_ms = interval_ms
        self._timer_ms = timer_ms
        self._due_ms = timer_ms()
        self._is_starting = True

    def started(self) -> None:
        """Send no more heartbeats: the event loop runs now."""
        self._is_starting = False

    def note_progress(self) -> None:
        """Send a heartbeat if the interval since the last one is over."""
        if self._is_starting and (now_ms := self._timer_ms()) >= self._due_ms:
            self._due_ms = now_ms + self._interval_ms
            self._send_heartbeat()

    # Whatever a start does, it makes some of these calls often.
    open = _noted(Files.open)
    pread = _noted(Files.pread)
    exists = _noted(Files.exists)
    list_directory = _noted(Files.list_directory)
    rename = _noted(Files.rename)
    fsync = _noted(Files.fsync)
