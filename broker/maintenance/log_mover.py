"""Moves logs between log directories while they are written to and read.

Disk threads copy ranges of files; the event loop decides which. When little is left, the new
directory is written to the metadata log and synced. Then, in one turn of the event loop, the last
bytes are copied and the directories renamed. A request for another directory cancels the move; a
request for the log's present directory does nothing else. All moves together keep to the rate
replica.alter.log.dirs.io.max.bytes.per.second, except for the last mebibyte of each.

A move that fails, or whose log is truncated, is given up, and the log stays where it is. A move
that a stop interrupts goes on at the next start. Kafka: ReplicaAlterLogDirsManager,
ReplicaAlterLogDirsThread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial

from odradek.broker.common.effective_config import EffectiveConfig
from odradek.broker.disk.cold_reads import ColdReads
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.disk.log_sync import LogSyncs
from odradek.broker.disk.throttle import MAX_SLEEP_SECONDS, Pace
from odradek.broker.maintenance.cleaning.log_cleaner import LogCleaner
from odradek.coordinator.metadata.topics import Topics
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.data_directory import DataDirectory
from odradek.storage.log import PartitionLog
from odradek.storage.moving.copy_plan import CopyPlan
from odradek.storage.moving.future_log import COPY_BYTES, FutureLog
from odradek.storage.moving.log_moves import LogMoves, future_name
from odradek.storage.topic_partition import TopicPartition

logger = logging.getLogger("odradek.moves")

MIN_COPY_BYTES = 64 << 10  # of one copy, however low the rate is
MAX_COPYING = 2  # moves copying at once: they share the disk threads with all fsyncs


class _EndedError(Exception):
    """The move was cancelled, the topic deleted, or the broker stops."""


class LogMover:
    """Starts requested moves, resumes those found at start, and completes them."""

    def __init__(  # noqa: PLR0913 # the parts of the broker that it connects
        self,
        *,
        moves: LogMoves,
        in_force: EffectiveConfig,
        topics: Topics,
        assign: Callable[[TopicPartition, bytes], object],
        assigned: Callable[[], Awaitable[None]],
        log_syncs: LogSyncs,
        log_cleaner: LogCleaner,
        disk: DiskExecutor,
        cold_reads: ColdReads,
        in_background: Callable[[Coroutine[None, None, None]], object],
    ) -> None:
        """`assign` records in the metadata that a replica is in a directory.

        `assigned` returns when that is on the disk, and raises ApiError. `in_background` runs what
        nobody waits for.
        """
        self._moves = moves
        self._manager = moves.manager
        self._in_force = in_force
        self._topics = topics
        self._assign = assign
        self._assigned = assigned
        self._log_syncs = log_syncs
        self._cleaner = log_cleaner
        self._retention = log_cleaner.retention
        self._disk = disk
        self._cold_reads = cold_reads
        self._in_background = in_background
        self._slots = asyncio.Semaphore(MAX_COPYING)
        loop = asyncio.get_running_loop()
        self._pace = Pace(in_force.move_bytes_per_second, now=loop.time)
        self._closed: asyncio.Future[None] = loop.create_future()

    def resume(self) -> None:
        """Resume the moves that the last stop interrupted."""
        for future in list(self._manager.futures.values()):
            logger.info("%s: resumes its move to %s", future.log.name, future.home.path)
            self._in_background(self._complete(future))

    def close(self) -> None:
        """Stop all moves soon. The next start continues with the copied files."""
        if not self._closed.done():
            self._closed.set_result(None)

    def alter(self, topic: str, index: int, path: str) -> asyncio.Future[ApiError | None] | None:
        """Start a move of the partition to the directory at `path`.

        The future gets the error of preparing the target directory, or None. Returns None if there
        is nothing to move. Raises ApiError: INVALID_TOPIC_EXCEPTION, LOG_DIR_NOT_FOUND,
        UNKNOWN_TOPIC_OR_PARTITION, REPLICA_NOT_AVAILABLE, INVALID_REPLICA_ASSIGNMENT (cordoned),
        KAFKA_STORAGE_ERROR.
        """
        future_name(topic, index)  # a name that is too long is refused first
        home = self._directory_at(path)
        log = self._log(topic, index)
        future = self._manager.futures.get(log.key)
        if future is not None and future.home is not home:
            logger.info("%s: the move to %s is cancelled", log.name, future.home.path)
            self._manager.drop_future(future.key)
            self._assign_to(log, self._manager.directory_of(log))
            future = None
        if future is None and self._manager.directory_of(log) is not home:
            future = self._moves.begin(log, home)
            logger.info("%s: starts its move to %s", log.name, home.path)
            prepared: asyncio.Future[ApiError | None] = asyncio.get_running_loop().create_future()
            self._in_background(self._move(future, prepared))
            return prepared
        return None

    def give_up(self, key: TopicPartition, reason: str) -> None:
        """End the move of a log, if there is one: the log stays where it is."""
        future = self._manager.futures.get(key)
        if future is not None:
            self._give_up(future, ApiError(ErrorCode.KAFKA_STORAGE_ERROR, reason))

    def _directory_at(self, path: str) -> DataDirectory:
        config = self._in_force.current
        if path not in (str(each.absolute()) for each in config.data_directories):
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not among the log directories")
        online = {str(directory.path): directory for directory in self._manager.directories}
        if path not in online:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
        if online[path].path in config.cordoned_directories:
            text = f"Log directory {path} is cordoned"
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        return online[path]

    def _log(self, topic: str, index: int) -> PartitionLog:
        known = self._topics.get(topic)
        try:
            log = self._manager.get(topic, index)
        except ApiError as error:
            if known is not None and index in known.partitions:
                raise ApiError(ErrorCode.REPLICA_NOT_AVAILABLE, error.message) from error
            raise
        if not log.is_online:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{log.name} is offline")
        return log

    # -- one move ---------------------------------------------------------------------------------

    async def _move(self, future: FutureLog, prepared: asyncio.Future[ApiError | None]) -> None:
        refusal = await self._prepare(future)
        prepared.set_result(refusal)
        if refusal is None:
            await self._complete(future)

    async def _prepare(self, future: FutureLog) -> ApiError | None:
        """Prepare the target directory; returns the error if that fails."""
        try:
            await self._disk.run(future.prepare)
        except OSError as error:
            self._give_up(future, error)
            text = f"{future.log.name} cannot be moved to {future.home.path}: {error}"
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)
        return None

    async def _complete(self, future: FutureLog) -> None:
        async with self._slots:
            source = self._manager.directory_of(future.log) if self._is_active(future) else None
            try:
                await self._copy(future)
            except _EndedError:
                return
            except (ApiError, OSError) as error:
                self._give_up(future, error)
                return
            assert source is not None
            logger.info("%s: has moved to %s", future.log.name, future.log.directory)
            await self._sync_names(future.log, source, future.home)

    async def _copy(self, future: FutureLog) -> None:
        """Copy the log, record the new directory on disk, and promote the copy."""
        await self._cleaner.cancel_rounds([future.key])  # no round starts on a log that moves
        plan = None
        while plan is None:
            await self._catch_up(future)
            plan = await self._cold_reads.look_up(future.name_active)
            self._check(future)
        await self._run_plan(future, plan)
        await self._disk.run(self._manager.write_log_starts)
        self._check(future)
        self._assign_to(future.log, future.home)
        await self._assigned()
        while True:
            await self._cold_reads.look_up(future.read_rest)
            await self._catch_up(future)
            if not self._retention.removes_from(future.key):
                break
            await self._retention.wait_for([future.key])
        self._moves.promote(future)

    async def _catch_up(self, future: FutureLog) -> None:
        """Copy until little is left. Returns in the same turn of the loop as that check."""
        while True:
            await self._await_rate(future)
            self._check(future)
            rate = self._pace.bytes_per_second
            max_bytes = COPY_BYTES if rate < 0 else max(int(rate), MIN_COPY_BYTES)
            plan = await self._cold_reads.look_up(partial(future.next_copy, max_bytes))
            self._check(future)
            if plan is None:
                return
            await self._run_plan(future, plan)

    async def _run_plan(self, future: FutureLog, plan: CopyPlan) -> None:
        await self._disk.run(plan.run)
        future.note(plan)
        self._pace.note(plan.size_bytes)

    async def _await_rate(self, future: FutureLog) -> None:
        """Wait until more may be copied; the rate may change during the wait."""
        self._pace.bytes_per_second = self._in_force.move_bytes_per_second
        while self._is_active(future) and (wait := self._pace.wait_seconds()) > 0:
            await asyncio.wait([self._closed], timeout=min(wait, MAX_SLEEP_SECONDS))
            self._pace.bytes_per_second = self._in_force.move_bytes_per_second
        self._pace.restart()

    def _check(self, future: FutureLog) -> None:
        if not self._is_active(future):
            raise _EndedError

    def _is_active(self, future: FutureLog) -> bool:
        # A deleted topic is gone from the metadata before its logs are, and their moves.
        is_deleted = future.key.topic not in self._topics
        return not (self._closed.done() or future.is_cancelled or is_deleted)

    def _assign_to(self, log: PartitionLog, home: DataDirectory) -> None:
        """Record the replica's directory in the metadata."""
        self._assign(log.key, home.directory_id)

    def _give_up(self, future: FutureLog, error: ApiError | OSError) -> None:
        if future.is_cancelled:
            return  # its directory went offline, or the log was deleted
        log, manager = future.log, self._manager
        logger.error("%s: cannot be moved to %s: %s", log.name, future.home.path, error)
        source = manager.directory_of(log)
        if isinstance(error, OSError):
            of_source = str(error.filename or "").startswith(f"{log.directory}/")
            manager.on_directory_error(source if of_source else future.home, error)
        manager.drop_future(future.key)
        if source.is_online:
            with suppress(ApiError):  # the metadata log is offline: the broker ends
                self._assign_to(log, source)

    async def _sync_names(
        self, log: PartitionLog, source: DataDirectory, home: DataDirectory
    ) -> None:
        """Sync the renames and write the checkpoints of the new directory."""
        for directory in (home, source):  # the new name first
            with suppress(OSError):  # the directory is offline then
                await self._log_syncs.run(partial(self._moves.sync_names, directory), directory)
        await self._log_syncs.flush_or_log(log)
        for write in (self._manager.write_recovery_points, self._manager.write_log_starts):
            await self._disk.run(write)
        await self._cleaner.save()
