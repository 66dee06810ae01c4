"""Look-ups on the event loop that never wait for a disk.

    attempt on the loop -> WouldWaitError -> a disk thread makes those reads -> attempt again -> ...

Where everything is in the page cache, the first attempt succeeds and nothing is different. Else the
kernel has after each round what the attempt before lacked. State is only touched on the loop, and a
new attempt sees it as it is then: a log may have been deleted meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from odradek.storage.files import NonBlockingReads, WouldWaitError

if TYPE_CHECKING:
    from odradek.storage.files import Files

    from .disk_executor import DiskExecutor

T = TypeVar("T")

Calls = Mapping[Hashable, Callable[[], object]]


class ColdReads:
    """To be made on the thread of the loop."""

    def __init__(self, files: Files, disk: DiskExecutor) -> None:
        self.first_attempt = NonBlockingReads(files)  # the same for all: nothing was read for it
        self._files = files
        self._disk = disk

    async def look_up(self, work: Callable[[], T], lacking: WouldWaitError | None = None) -> T:
        """What `work` returns, and raises. It is called once or more often, on the loop.

        `lacking`: what its first attempt has raised, where the caller has made that.
        """
        attempt = NonBlockingReads(self._files)
        while True:
            if lacking is not None:
                await self._disk.run(make, lacking.calls)
                attempt.made.update(lacking.calls)
            try:
                with attempt:
                    return work()
            except WouldWaitError as error:
                lacking = error


def make(calls: Calls) -> None:
    """Make the calls; one that fails will fail again in the next attempt, which says so."""
    for call in calls.values():
        with suppress(OSError):
            call()


def together(errors: Iterable[WouldWaitError]) -> WouldWaitError:
    """What several look-ups lack, to be read in one go."""
    calls: dict[Hashable, Callable[[], object]] = {}
    for error in errors:
        calls |= error.calls
    return WouldWaitError(calls)
