"""Lets a Fetch wait until enough bytes have been appended or its time is up.

A waiter registers with every log that it reads. Each append calls it, and it counts the new bytes.
So an append to a log without waiters only checks an empty set.
Kafka: DelayedFetch and its purgatory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from odradek.storage.log import PartitionLog
from odradek.storage.segment import Segment


class FetchWaiters:
    """All fetches that wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: set[_Waiter] = set()
        self._is_stopping = False

    @property
    def count(self) -> int:
        """How many fetches wait."""
        return len(self._waiting)

    def wait(
        self,
        logs: Sequence[PartitionLog],
        missing_bytes: int,
        max_wait_ms: float,
        *,
        committed: bool = False,
    ) -> asyncio.Future[bool]:
        """Wait until `missing_bytes` are appended to the logs, or `max_wait_ms` have passed.

        With `committed`, bytes after the start of an open transaction do not count. When the
        transaction ends, the result is True, and the caller reads again.
        The result is True if the bytes were appended, or if a log rolled, was truncated or went
        offline. It is False if the time has passed or the broker stops. Bytes are counted from this
        call on, so a caller that has read the logs in the same turn of the event loop misses none.
        """
        if self._is_stopping:  # a Fetch that was reading from the disk
            max_wait_ms = 0
        return _Waiter(self._loop, self._waiting, logs, missing_bytes, max_wait_ms, committed)

    def release_all(self) -> None:
        """Answer all fetches, also later ones, with the data there is, because the broker stops."""
        self._is_stopping = True
        for waiter in tuple(self._waiting):
            waiter.release()


class _Waiter(asyncio.Future[bool]):
    """One fetch that waits for `missing_bytes` more, over all of its logs.

    It unsubscribes from them by itself, because a callback of a future costs as much as the rest.
    """

    __slots__ = ("_all", "_ends", "_missing_bytes", "_stable_ends", "_timer")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        every: set[_Waiter],
        logs: Sequence[PartitionLog],
        missing_bytes: int,
        max_wait_ms: float,
        committed: bool,
    ) -> None:
        super().__init__(loop=loop)
        self._timer = loop.call_later(max_wait_ms / 1000, self.release)
        self._all = every
        every.add(self)
        self._missing_bytes = missing_bytes
        self._ends = {log: _end_of(log) for log in logs}
        self._stable_ends = {log: _stable_end_of(log) for log in logs} if committed else {}
        for log in self._ends:
            log.on_append.add(self._appended)

    def _appended(self, log: PartitionLog) -> None:
        """Count the bytes of a log that has grown, rolled, shrunk or gone offline."""
        before, now = self._ends[log], _end_of(log)
        self._ends[log] = now
        # If the log rolled, shrank or went offline, the fetch reads again.
        is_same = before[0] is now[0] is not None and now[1] >= before[1] and log.is_online
        if is_same and self._stable_ends:
            stable_before, self._stable_ends[log] = self._stable_ends[log], _stable_end_of(log)
            stable_now = self._stable_ends[log]
            if stable_now.offset == stable_before.offset:
                return  # the new bytes follow the start of an open transaction
            # If a transaction has ended, the fetch reads again.
            is_same = stable_before.is_log_end and stable_now.is_log_end
        if is_same:
            self._missing_bytes -= now[1] - before[1]
        if self._missing_bytes <= 0 or not is_same:
            self.release(is_readable=True)

    def release(self, *, is_readable: bool = False) -> None:
        """Resume the fetch."""
        if not self.done():
            self._unsubscribe()
            self.set_result(is_readable)

    def cancel(self, msg: object = None) -> bool:
        """Stop waiting."""
        self._unsubscribe()
        return super().cancel(msg)

    def _unsubscribe(self) -> None:
        self._timer.cancel()
        self._all.discard(self)
        for log in self._ends:
            log.on_append.discard(self._appended)


class _StableEnd(NamedTuple):
    """A log's last stable offset, and whether it is the end of the log: no transaction is open."""

    offset: int
    is_log_end: bool


def _stable_end_of(log: PartitionLog) -> _StableEnd:
    offset = log.last_stable_offset
    return _StableEnd(offset, offset == log.log_end_offset)


def _end_of(log: PartitionLog) -> tuple[Segment | None, int]:
    """The active segment, and how many bytes of it readers see.

    (None, 0) while the newest records wait for their sync, because the number is unknown then.
    """
    if log.high_watermark < log.log_end_offset:
        return None, 0
    active = log.segments.active
    return active, active.size_bytes
