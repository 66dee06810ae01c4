"""Reads of logs on the event loop that never wait for a disk, or for records to be unpacked.

    attempt on the loop -> WouldWaitError -> a disk thread does those reads -> attempt again -> ...
                                          -> a process walks those records

If all pages are in the page cache, the first attempt succeeds. Otherwise the disk thread loads the
pages that the attempt lacked, and the work is attempted again. Work that must know what is in
records that take long to unpack gets the results of their walks with the next attempt. State is
only used on the loop. Each attempt sees the current state: a log may have been deleted since the
last one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from typing import TypeVar

from odradek.protocol.errors import ApiError
from odradek.storage.files import Files, NonBlockingReads, Walk, WouldWaitError

from .disk_executor import DiskExecutor

T = TypeVar("T")

THE_BROKER = ""  # the client of reads that the broker itself needs

Calls = Mapping[Hashable, Callable[[], object]]
# Runs `walk(batch, limits=...)` in another process. Raises ApiError.
RunWalk = Callable[[Callable[..., object], bytes, Hashable], Awaitable[object]]


class ColdReads:
    """Runs reads. Must be created on the thread of the event loop."""

    def __init__(self, files: Files, disk: DiskExecutor, run_walk: RunWalk) -> None:
        self.first_attempt = NonBlockingReads(files)  # one for all callers: holds no results
        self._files = files
        self._disk = disk
        self._run_walk = run_walk

    async def look_up(
        self,
        work: Callable[[], T],
        lacking: WouldWaitError | None = None,
        client: Hashable = THE_BROKER,
    ) -> T:
        """Return what `work` returns, and raise what it raises. Calls `work` at least once.

        `lacking`: the error of the first attempt, if the caller has made it. `client`: for whom
        records are walked.
        """
        attempt = NonBlockingReads(self._files)
        while True:
            if lacking is not None:
                if lacking.calls:
                    await self._disk.run(make_calls, lacking.calls)
                attempt.made.update(lacking.calls)
                for key, walk in lacking.walks.items():
                    attempt.results[key] = await self._result_of(walk, client)
            try:
                with attempt:
                    return work()
            except WouldWaitError as error:
                lacking = error.with_traceback(None)

    async def _result_of(self, walk: Walk, client: Hashable) -> object:
        """What a walk returns or raises. The caller of `look_up` handles errors of one log."""
        try:
            data = await self._disk.run(
                self._files.pread_exact, walk.file, walk.size, walk.position
            )
            return await self._run_walk(walk.walk, data, client)
        except (ApiError, OSError, EOFError) as error:
            return error


def make_calls(calls: Calls) -> None:
    """Make the calls. One that fails fails again in the next attempt, which reports the error."""
    for call in calls.values():
        with suppress(OSError):
            call()
