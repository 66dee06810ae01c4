"""Waits until everything appended to a log so far is on the disk; one fsync serves all who wait.

While an fsync runs, those who come wait for the next one, which starts when the first ends: what
they wrote may not be covered by the one under way. Logs do not wait for each other: each fsync has
a disk thread of its own.

An fsync that fails is never tried again: the kernel may have dropped the pages that it could not
write and call the next fsync a success (PostgreSQL's "fsyncgate"). So the directory goes offline,
and whoever waits for anything in it gets the error. A success that comes after the failure of
another fsync in the same directory counts for nothing either: the error may have been told to that
one alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.topic_names import is_internal

if TYPE_CHECKING:
    from odradek.storage.log import PartitionLog
    from odradek.storage.log_manager import LogManager

    from .disk_executor import DiskExecutor

Sync = asyncio.Future[None]


class LogSync:
    """Group commit for one log. `on_failure` is told of the fsync that failed."""

    def __init__(
        self,
        log: PartitionLog,
        disk: DiskExecutor,
        now_ms: Callable[[], int],
        on_failure: Callable[[PartitionLog, OSError], object],
    ) -> None:
        self._log = log
        self._disk = disk
        self._now_ms = now_ms
        self._on_failure = on_failure
        self._running: Sync | None = None
        self._next: Sync | None = None

    async def sync(self) -> None:
        """Return when all that is in the log now is on the disk. Raises KAFKA_STORAGE_ERROR."""
        sync = self.start()
        if sync is not None:
            # Shielded: one client that goes away must not cancel the others' fsync.
            await asyncio.shield(sync)

    def start(self) -> Sync | None:
        """The fsync that covers all that is in the log now; None: it is on the disk already.

        To be waited for by many: shield it, or use `asyncio.wait`. Fails with KAFKA_STORAGE_ERROR.
        """
        if self._log.recovery_point >= self._log.log_end_offset:
            return None
        if self._next is None:
            self._next = asyncio.ensure_future(self._after(self._running))
            self._next.add_done_callback(_heard)
        return self._next

    async def _after(self, previous: Sync | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        self._running, self._next = self._next, None
        self._check()
        plan = self._log.flush_plan()
        if plan is None:
            return
        try:
            await self._disk.run(plan.run)
        except OSError as error:
            self._on_failure(self._log, error)
            text = f"{self._log.name}: a sync failed: {error}"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text) from error
        self._check()
        self._log.mark_flushed(plan, self._now_ms())

    def _check(self) -> None:
        if not self._log.is_online:
            text = f"{self._log.name} went offline before its records were synced"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)


class LogSyncs:
    """The group commits of the partition logs whose flush.messages is reached.

    A log tells when an append left more unsynced than it may (`flush_due`); its fsync starts then.
    `due` holds those begun by the request that is being served: its answer waits for them. What a
    coordinator writes may be the outcome of one request and the answer to another, that was parked,
    or of a timer: `coordinators` holds those of the internal topics, and which log is synced, until
    they have ended.
    """

    def __init__(
        self, log_manager: LogManager, disk: DiskExecutor, now_ms: Callable[[], int]
    ) -> None:
        self.due: dict[PartitionLog, Sync] = {}
        self.coordinators: dict[Sync, PartitionLog] = {}
        self._log_manager = log_manager
        self._disk = disk
        self._now_ms = now_ms
        self._syncs: WeakKeyDictionary[PartitionLog, LogSync] = WeakKeyDictionary()

    def flush_due(self, log: PartitionLog) -> None:
        """An append has reached flush.messages."""
        sync = self._of(log).start()
        if sync is not None:
            self.due[log] = sync
            if is_internal(log.topic):
                self.coordinators[sync] = log
                sync.add_done_callback(self._coordinator_synced)

    def take_due(self) -> dict[PartitionLog, Sync]:
        """The fsyncs that the answer must wait for; they are its business from now on."""
        due, self.due = self.due, {}
        return due

    def _coordinator_synced(self, sync: Sync) -> None:
        self.coordinators.pop(sync, None)

    def _of(self, log: PartitionLog) -> LogSync:
        sync = self._syncs.get(log)
        if sync is None:
            sync = LogSync(log, self._disk, self._now_ms, self._log_manager.sync_failed)
            self._syncs[log] = sync
        return sync


def _heard(sync: Sync) -> None:
    """Failures have been dealt with even where nobody waits (acks=0): asyncio need not complain."""
    if not sync.cancelled():
        sync.exception()
