"""Lets a Fetch wait until enough bytes have been appended or its time is up.

A waiter registers with every log that it reads. Each append calls it, and it counts the new bytes.
So an append to a log without waiters only checks an empty set.

A Fetch that reads its logs in one turn of the event loop waits by `FetchWaiters.wait`. One that
reads many, in slices, registers with each log as it reads it (LogWatch).
Kafka: DelayedFetch and its purgatory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from odradek.coordinator.runtime.steps import Step, stepping
from odradek.storage.log import PartitionLog
from odradek.storage.segment import Segment

from .fetch_sessions import PartitionKey

# Counts as more bytes than any Fetch waits for.
_ENOUGH_BYTES = 1 << 62


class FetchWaiters:
    """All fetches that wait."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: set[_Waiter | LogWatch] = set()
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

    def watch(self, *, committed: bool) -> LogWatch:
        """A watch without logs. `committed` as for `wait`."""
        return LogWatch(self, self._loop, self._waiting, committed)

    @property
    def is_stopping(self) -> bool:
        """Whether no Fetch waits any more."""
        return self._is_stopping

    def wake_all(self) -> None:
        """Let all fetches read again: what they may read has changed."""
        for waiter in tuple(self._waiting):
            waiter.release(is_readable=True)

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
        every: set[_Waiter | LogWatch],
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
        self._missing_bytes -= _new_bytes(log, self._ends, self._stable_ends)
        if self._missing_bytes <= 0:
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


class LogWatch:
    """The new bytes of logs that are read one after another, each since it was read last."""

    def __init__(
        self,
        waiters: FetchWaiters,
        loop: asyncio.AbstractEventLoop,
        every: set[_Waiter | LogWatch],
        committed: bool,
    ) -> None:
        self._waiters = waiters
        self._loop = loop
        self._all = every
        self._committed = committed
        self._keys: dict[PartitionLog, tuple[int, PartitionKey]] = {}  # in the order of reads
        self._ends: dict[PartitionLog, _End] = {}
        self._stable_ends: dict[PartitionLog, _StableEnd] = {}
        self._new_bytes: dict[PartitionLog, int] = {}
        self._sum_bytes = 0
        self._missing_bytes = 0
        self._wakes: asyncio.Future[bool] | None = None

    def add(self, key: PartitionKey, log: PartitionLog) -> None:
        """Count the bytes of a log from now on. The caller reads it in the same turn."""
        if log in self._keys:
            self._sum_bytes -= self._new_bytes.pop(log, 0)
        else:
            self._keys[log] = len(self._keys), key
            log.on_append.add(self._appended)
        self._ends[log] = _end_of(log)
        if self._committed:
            self._stable_ends[log] = _stable_end_of(log)

    def changed(self) -> list[PartitionKey]:
        """The partitions that have changed since they were read, in the order of reads."""
        return [key for _, key in sorted(self._keys[log] for log in self._new_bytes)]

    async def wait(self, missing_bytes: int, max_wait_ms: float) -> bool:
        """Wait until there are this many new bytes. The result is that of `FetchWaiters.wait`."""
        if self._sum_bytes >= missing_bytes:
            return True
        if self._waiters.is_stopping:
            return False
        self._missing_bytes = missing_bytes
        self._wakes = self._loop.create_future()
        timer = self._loop.call_later(max_wait_ms / 1000, self.release)
        self._all.add(self)
        try:
            return await self._wakes
        finally:
            self._wakes = None
            timer.cancel()
            self._all.discard(self)

    def release(self, *, is_readable: bool = False) -> None:
        """Resume the fetch."""
        if self._wakes is not None and not self._wakes.done():
            self._wakes.set_result(is_readable)

    def _appended(self, log: PartitionLog) -> None:
        count = _new_bytes(log, self._ends, self._stable_ends)
        self._new_bytes[log] = self._new_bytes.get(log, 0) + count
        self._sum_bytes += count
        if self._sum_bytes >= self._missing_bytes:
            self.release(is_readable=True)

    def close(self, step: Step) -> None:
        """Stop counting."""
        for log in stepping(iter(self._ends), step):
            log.on_append.discard(self._appended)


class _StableEnd(NamedTuple):
    """A log's last stable offset, and whether it is the end of the log: no transaction is open."""

    offset: int
    is_log_end: bool


def _stable_end_of(log: PartitionLog) -> _StableEnd:
    offset = log.last_stable_offset
    return _StableEnd(offset, offset == log.log_end_offset)


# The active segment, and how many bytes of it readers see.
_End = tuple[Segment | None, int]


def _new_bytes(
    log: PartitionLog,
    ends: dict[PartitionLog, _End],
    stable_ends: dict[PartitionLog, _StableEnd],
) -> int:
    """How many bytes a log has more than at the last call. Both ends are updated.

    _ENOUGH_BYTES if the fetch must read again: the log rolled, shrank or went offline, or a
    transaction has ended.
    """
    before, now = ends[log], _end_of(log)
    ends[log] = now
    is_same = before[0] is now[0] is not None and now[1] >= before[1] and log.is_online
    if is_same and stable_ends:
        stable_before, stable_now = stable_ends[log], _stable_end_of(log)
        stable_ends[log] = stable_now
        if stable_now.offset == stable_before.offset:
            return 0  # the new bytes follow the start of an open transaction
        is_same = stable_before.is_log_end and stable_now.is_log_end
    return now[1] - before[1] if is_same else _ENOUGH_BYTES


def _end_of(log: PartitionLog) -> _End:
    """(None, 0) while the newest records wait for their sync: the number is unknown then."""
    if log.high_watermark < log.log_end_offset:
        return None, 0
    active = log.segments.active
    return active, active.size_bytes
