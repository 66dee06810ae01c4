"""Syncs logs in disk threads, and lets those who wait for the same log share one fsync.

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
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.directories.disk_errors import lacks_descriptors
from odradek.storage.topic_names import is_internal

if TYPE_CHECKING:
    from odradek.storage.directories.data_directory import DataDirectory
    from odradek.storage.log import PartitionLog
    from odradek.storage.log_manager import LogManager

    from .disk_executor import DiskExecutor

Sync = asyncio.Future[None]

logger = logging.getLogger("odradek.disk")

# A sync that finds no file descriptor is tried so often before it counts as failed.
ATTEMPTS = 30
RETRY_SECONDS = 1.0


class LogSync:
    """Group commit for one log. `flush` syncs the log, as `LogSyncs.flush` does.

    `on_end` is called with each fsync that has ended, and has to take its exception.
    """

    def __init__(
        self,
        log: PartitionLog,
        flush: Callable[[PartitionLog], Awaitable[None]],
        on_end: Callable[[Sync], object] | None = None,
    ) -> None:
        self._log = log
        self._flush = flush
        self._on_end = on_end or _heard
        self._running: Sync | None = None
        self._next: Sync | None = None

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for an fsync."""
        return self._next is None and (self._running is None or self._running.done())

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
            self._next.add_done_callback(self._on_end)
        return self._next

    async def _after(self, previous: Sync | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        self._running, self._next = self._next, None
        await self._flush(self._log)


class LogSyncs:
    """Syncs logs: when flush.messages is reached, after a roll, by the clock, when asked to.

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
        self._syncs: dict[PartitionLog, LogSync] = {}  # where an fsync is waited for

    def flush_due(self, log: PartitionLog) -> None:
        """An append has reached flush.messages."""
        group = self._syncs.get(log)
        if group is None:
            group = self._syncs[log] = LogSync(log, self.flush, partial(self._synced, log))
        sync = group.start()
        if sync is None:
            self._forget_if_idle(log)
            return
        self.due[log] = sync
        if is_internal(log.topic):
            self.coordinators[sync] = log

    def take_due(self) -> dict[PartitionLog, Sync]:
        """The fsyncs that the answer must wait for; they are its business from now on."""
        due, self.due = self.due, {}
        return due

    def _synced(self, log: PartitionLog, sync: Sync) -> None:
        _heard(sync)
        self.coordinators.pop(sync, None)
        self._forget_if_idle(log)

    def _forget_if_idle(self, log: PartitionLog) -> None:
        if log in self._syncs and self._syncs[log].is_idle:
            del self._syncs[log]

    async def flush(self, log: PartitionLog, up_to_offset: int | None = None) -> None:
        """Sync a log in a disk thread, up to an offset or all there is now.

        A directory in which an fsync fails goes offline. Raises KAFKA_STORAGE_ERROR.
        """
        _check_online(log)
        plan = log.flush_plan(up_to_offset)
        if plan is None:
            return
        try:
            # The log may move while the plan runs: an error is of the directory where it is now.
            await self.run(plan.run, self._log_manager.directory_of(log))
        except OSError as error:
            text = f"{log.name}: a sync failed: {error}"
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text) from error
        _check_online(log)  # another sync may have failed, and been told what this one was not
        log.mark_flushed(plan, self._now_ms())

    async def run(self, sync: Callable[[], None], directory: DataDirectory) -> None:
        """Call `sync` in a disk thread; if it fails, the directory goes offline. Raises OSError.

        Where no file could be opened no fsync has failed yet: it is called again.
        """
        for attempt in range(ATTEMPTS):
            try:
                await self._disk.run(sync)
                break
            except OSError as error:
                if attempt == ATTEMPTS - 1 or not lacks_descriptors(error):
                    self._log_manager.sync_failed(directory, error)
                    raise
                logger.warning("a sync is tried again: %s", error)
            await asyncio.sleep(RETRY_SECONDS)

    async def flush_unasked(self, log: PartitionLog, up_to_offset: int | None = None) -> None:
        """As `flush`, where nobody waits for it: the failure of a log or directory is logged."""
        with suppress(ApiError):
            await self.flush(log, up_to_offset)

    async def flush_by_the_clock(self) -> None:
        """Sync the logs that flush.ms wants synced now (log.flush.scheduler.interval.ms)."""
        due = self._log_manager.logs_to_flush(self._now_ms())
        await asyncio.gather(*map(self.flush_unasked, due))


def _check_online(log: PartitionLog) -> None:
    if not log.is_online:
        text = f"{log.name} went offline before its records were synced"
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)


def _heard(sync: Sync) -> None:
    """Failures have been dealt with even where nobody waits (acks=0): asyncio need not complain."""
    if not sync.cancelled():
        sync.exception()
