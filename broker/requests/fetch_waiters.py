"""Where a Fetch waits until enough bytes have been appended, or its time is up.

A waiter registers with every log it reads; each append calls it, and it counts the bytes that are
new. There is no list to search: a log without waiters costs an append one look at an empty set.
Kafka: DelayedFetch and its purgatory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from odradek.storage.log import PartitionLog
from odradek.storage.segment import Segment


class FetchWaiters:
    """All Fetches that wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: set[_Waiter] = set()

    def wait(
        self, logs: Sequence[PartitionLog], missing_bytes: int, max_wait_ms: float
    ) -> asyncio.Future[bool]:
        """Whether so many bytes have been appended; False after `max_wait_ms`, or at the end.

        It counts from this call on: who has read the logs in the same turn misses nothing.
        """
        waiter = _Waiter(self._loop.create_future(), logs, missing_bytes)
        timer = self._loop.call_later(max_wait_ms / 1000, waiter.release)
        self._waiting.add(waiter)

        def ended(_: asyncio.Future[bool]) -> None:
            timer.cancel()
            waiter.leave()
            self._waiting.discard(waiter)

        waiter.future.add_done_callback(ended)
        return waiter.future

    def release_all(self) -> None:
        """The broker stops: everybody is answered with what there is."""
        for waiter in self._waiting:
            waiter.release()


class _Waiter:
    """One Fetch that waits for `missing_bytes` more in any of its logs."""

    def __init__(
        self, future: asyncio.Future[bool], logs: Sequence[PartitionLog], missing_bytes: int
    ) -> None:
        self.future = future
        self._missing_bytes = missing_bytes
        self._ends = {log: _end_of(log) for log in logs}
        for log in self._ends:
            log.on_append.add(self._appended)

    def _appended(self, log: PartitionLog) -> None:
        """Called by a log that has grown, or is no more."""
        before, now = self._ends[log], _end_of(log)
        self._ends[log] = now
        # A log that rolled, shrank or is gone: the Fetch should look again.
        is_same = before[0] is now[0] is not None and now[1] >= before[1] and log.is_online
        if is_same:
            self._missing_bytes -= now[1] - before[1]
        if self._missing_bytes <= 0 or not is_same:
            self.release(has_news=True)

    def release(self, *, has_news: bool = False) -> None:
        """Let it go on."""
        if not self.future.done():
            self.future.set_result(has_news)

    def leave(self) -> None:
        """Hear no more of the logs."""
        for log in self._ends:
            log.on_append.discard(self._appended)


def _end_of(log: PartitionLog) -> tuple[Segment | None, int]:
    """The active segment, and how many bytes of it readers see.

    No segment while the newest records wait for their sync: then that is not known.
    """
    if log.high_watermark < log.log_end_offset:
        return None, 0
    active = log.segments.active
    return active, active.size_bytes
