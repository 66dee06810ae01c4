"""Where a Fetch waits until enough bytes have been appended, or its time is up.

A waiter registers with every log it reads; each append calls it, and it counts the bytes that are
new. There is no list to search: a log without waiters costs an append one look at an empty set.
Kafka: DelayedFetch and its purgatory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..storage.log import PartitionLog
from ..storage.segment import Segment


class FetchWaiter:
    """One Fetch that waits. Await `wait()` once."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, logs: Sequence[PartitionLog], missing_bytes: int
    ) -> None:
        self._loop = loop
        self._missing_bytes = missing_bytes
        self._ends = {log: _end_of(log) for log in logs}
        self._future: asyncio.Future[None] = loop.create_future()

    async def wait(self, max_wait_ms: int) -> None:
        """Return when `missing_bytes` more have been appended, or after `max_wait_ms`."""
        timer = self._loop.call_later(max_wait_ms / 1000, self._done)
        for log in self._ends:
            log.on_append.add(self._appended)
        try:
            await self._future
        finally:
            timer.cancel()
            for log in self._ends:
                log.on_append.discard(self._appended)

    def _appended(self, log: PartitionLog) -> None:
        """Called by a log that has grown, or is no more."""
        segment, size_bytes = self._ends[log]
        self._ends[log] = active, new_size_bytes = _end_of(log)
        self._missing_bytes -= new_size_bytes - size_bytes
        # A log that rolled, shrank or is gone: the Fetch should look again.
        is_same = active is segment and new_size_bytes >= size_bytes and log.is_online
        if self._missing_bytes <= 0 or not is_same:
            self._done()

    def _done(self) -> None:
        if not self._future.done():
            self._future.set_result(None)


def _end_of(log: PartitionLog) -> tuple[Segment, int]:
    active = log.segments.active
    return active, active.size_bytes
