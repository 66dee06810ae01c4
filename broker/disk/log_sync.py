"""Group commit: syncs logs in disk threads; all callers that wait for one log share an fsync.

A caller that comes while an fsync runs waits for the next one, which starts when the first ends:
the running one may not cover what the caller wrote. Logs do not wait for each other: each fsync has
its own disk thread.

A failed fsync is never retried. The kernel may have dropped the pages that it could not write, and
then reports success for the next fsync (PostgreSQL's "fsyncgate"). So the directory goes offline,
and every caller that waits for something in it gets the error. A success after the failure of
another fsync in the same directory does not count either: the kernel may report an error only once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from time import perf_counter

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.data_directory import DataDirectory
from odradek.storage.disk_errors import lacks_descriptors
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.topic_names import is_internal

from .disk_executor import DiskExecutor

Sync = asyncio.Future[None]
# The fsyncs that a response waits for.
Due = dict[PartitionLog, Sync]

logger = logging.getLogger("odradek.disk")

# The number of attempts of a sync that finds no free file descriptor.
ATTEMPTS = 30
RETRY_SECONDS = 1.0
FLUSHES_AT_ONCE = 8  # of logs whose flush.ms is over: enough for all disk threads


class LogSync:
    """Group commit for one log. `flush` syncs the log, as `LogSyncs.flush` does.

    `on_end` is called with each fsync that has ended, and must retrieve its exception.
    """

    def __init__(
        self,
        log: PartitionLog,
        flush: Callable[[PartitionLog], Awaitable[None]],
        on_end: Callable[[Sync], object] | None = None,
    ) -> None:
        self._log = log
        self._flush = flush
        self._on_end = on_end or _retrieve_exception
        self._running: Sync | None = None
        self._next: Sync | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no fsync is running or wanted."""
        return self._next is None and (self._running is None or self._running.done())

    async def sync(self) -> None:
        """Return when everything now in the log is on the disk. Raises KAFKA_STORAGE_ERROR."""
        sync = self.start()
        if sync is not None:
            # Shielded: a client that disconnects must not cancel the fsync of the others.
            await asyncio.shield(sync)

    def start(self) -> Sync | None:
        """Return the fsync that covers everything now in the log; None if it is synced already.

        Callers share the future: shield it, or use `asyncio.wait`. Fails with KAFKA_STORAGE_ERROR.
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
    """Syncs logs: when flush.messages is reached, after a roll, after flush.ms, and on request.

    A log calls `flush_due` when flush.messages is reached, and its fsync starts. `due` holds the
    fsyncs started by the request that is being served: its response waits for them. A coordinator's
    write may also be the result of a timer, or release the response of another, parked request. So
    `coordinators` holds all running fsyncs of internal topics, with their logs. `lost_count` is how
    many of them have failed: a request that notes it at its begin knows later whether one has ended
    meanwhile. `on_lost` is called with the log of each. `on_synced` is called with the seconds that
    each sync took.
    """

    def __init__(
        self, log_manager: LogManager, disk: DiskExecutor, timer_ms: Callable[[], int]
    ) -> None:
        self.due: Due = {}
        self.coordinators: dict[Sync, PartitionLog] = {}
        self.lost_count = 0
        self.on_lost: Callable[[PartitionLog], object] | None = None
        self._log_manager = log_manager
        self._disk = disk
        self._timer_ms = timer_ms
        self.on_synced: Callable[[float], object] | None = None
        self._syncs: dict[PartitionLog, LogSync] = {}  # logs with a running fsync
        # Logs whose closed segments are being synced, and whether they have rolled since.
        self._rolled: dict[PartitionLog, bool] = {}

    def flush_due(self, log: PartitionLog) -> None:
        """Start an fsync: an append has reached flush.messages."""
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

    def running(self, log: PartitionLog) -> Sync | None:
        """Return the newest fsync of a coordinator's log that has not ended; None if there is none.

        It covers all records that wait for one.
        """
        newest = None
        for sync, synced in self.coordinators.items():
            if synced is log:
                newest = sync
        return newest

    def take_due(self) -> Due:
        """Return the fsyncs that the response must wait for, and clear `due`."""
        due, self.due = self.due, {}
        return due

    def _synced(self, log: PartitionLog, sync: Sync) -> None:
        error = _retrieve_exception(sync)
        is_coordinators = self.coordinators.pop(sync, None) is not None
        self._forget_if_idle(log)
        if error is not None and is_coordinators:
            self.lost_count += 1
            if self.on_lost is not None:
                self.on_lost(log)

    def _forget_if_idle(self, log: PartitionLog) -> None:
        if log in self._syncs and self._syncs[log].is_idle:
            del self._syncs[log]

    async def flush(self, log: PartitionLog, up_to_offset: int | None = None) -> None:
        """Sync a log in a disk thread: up to an offset, or everything now in it.

        A directory in which an fsync fails goes offline. Raises KAFKA_STORAGE_ERROR.
        """
        for _ in log.producers.encode_in_parts():
            await asyncio.sleep(0)
        _check_online(log)
        end_offset = log.log_end_offset if up_to_offset is None else up_to_offset
        while (plan := log.flush_plan(up_to_offset)) is not None:
            try:
                # The log may move while the plan runs. An error concerns its directory of now.
                await self.run(plan.run, self._log_manager.directory_of(log))
            except OSError as error:
                text = f"{log.name}: a sync failed: {error}"
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text) from error
            _check_online(log)  # another sync may have failed; see the module
            log.mark_flushed(plan, self._timer_ms())
            if plan.up_to_offset >= end_offset:
                return

    async def run(self, sync: Callable[[], None], directory: DataDirectory) -> None:
        """Call `sync` in a disk thread. If it fails, the directory goes offline. Raises OSError.

        If no file could be opened for lack of descriptors, no fsync has failed: it is retried.
        """
        began = perf_counter()
        for attempt in range(ATTEMPTS):
            try:
                await self._disk.run(sync)
                break
            except OSError as error:
                if attempt == ATTEMPTS - 1 or not lacks_descriptors(error):
                    self._log_manager.sync_failed(directory, error)
                    raise
                logger.warning("a sync is retried: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
        if self.on_synced is not None:
            self.on_synced(perf_counter() - began)

    async def flush_closed(self, log: PartitionLog) -> None:
        """Sync the segments that rolls have closed, together if there are many. Kafka: flush-log.

        One such sync of a log runs at a time. Failures are logged.
        """
        is_running = log in self._rolled
        self._rolled[log] = True
        if is_running:
            return
        try:
            while self._rolled[log]:
                self._rolled[log] = False
                await self.flush_or_log(log, log.segments.active.base_offset)
        finally:
            del self._rolled[log]

    async def flush_or_log(self, log: PartitionLog, up_to_offset: int | None = None) -> None:
        """Like `flush`, but raises no ApiError: the failure of a log or directory is logged."""
        with suppress(ApiError):
            await self.flush(log, up_to_offset)

    async def flush_due_by_time(self) -> None:
        """Sync the logs whose flush.ms is over. Runs every log.flush.scheduler.interval.ms."""
        # A plan is made on the event loop, and opens files: thousands at once would take a second.
        due = iter(self._log_manager.logs_to_flush(self._timer_ms()))
        await asyncio.gather(*(self._flush_each(due) for _ in range(FLUSHES_AT_ONCE)))

    async def _flush_each(self, due: Iterator[PartitionLog]) -> None:
        for log in due:
            await self.flush_or_log(log)
            await asyncio.sleep(0)  # most have nothing to sync


def _check_online(log: PartitionLog) -> None:
    if not log.is_online:
        text = f"{log.name} went offline before its records were synced"
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)


def _retrieve_exception(sync: Sync) -> BaseException | None:
    """Keep asyncio from logging a failure that nothing awaits (acks=0); it is handled already."""
    return None if sync.cancelled() else sync.exception()
