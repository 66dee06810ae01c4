"""Reads of logs on the event loop that never wait for a disk.

    attempt on the loop -> WouldWaitError -> a disk thread does those reads -> attempt again -> ...

If all pages are in the page cache, the first attempt succeeds. Otherwise the disk thread loads the
pages that the attempt lacked, and the work is attempted again. State is only used on the loop. Each
attempt sees the current state: a log may have been deleted since the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

from odradek.storage.files import Files, NonBlockingReads, WouldWaitError

from .disk_executor import DiskExecutor

T = TypeVar("T")

Calls = Mapping[Hashable, Callable[[], object]]


class ColdReads:
    """Runs reads. Must be created on the thread of the event loop."""

    def __init__(self, files: Files, disk: DiskExecutor) -> None:
        self.first_attempt = NonBlockingReads(files)  # one for all callers: holds no results
        self._files = files
        self._disk = disk

    async def look_up(self, work: Callable[[], T], lacking: WouldWaitError | None = None) -> T:
        """Return what `work` returns, and raise what it raises. Calls `work` at least once.

        `lacking`: the error of the first attempt, if the caller has made it.
        """
        attempt = NonBlockingReads(self._files)
        while True:
            if lacking is not None:
                await self._disk.run(make_calls, lacking.calls)
                attempt.made.update(lacking.calls)
            try:
                with attempt:
                    return work()
            except WouldWaitError as error:
                lacking = error


def make_calls(calls: Calls) -> None:
    """Make the calls. One that fails fails again in the next attempt, which reports the error."""
    for call in calls.values():
        with suppress(OSError):
            call()


def combine(errors: Iterable[WouldWaitError]) -> WouldWaitError:
    """Combine the reads that several attempts lack, to make them in one call."""
    calls: dict[Hashable, Callable[[], object]] = {}
    for error in errors:
        calls |= error.calls
    return WouldWaitError(calls)
