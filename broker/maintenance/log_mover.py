"""Moves logs between log directories while they are written to and read.

Disk threads copy, a range of a file at a time; the loop only says which. When little is left, the
metadata is told of the new directory and synced; then, in one turn of the loop, the last bytes are
copied and the names change. Who asks for another directory meanwhile ends the move: for the one
where the log is, that is all there is to do. All moves together keep to the rate of
replica.alter.log.dirs.io.max.bytes.per.second, but for the last mebibyte of each.

A move that fails is given up, and the log stays where it is. One that a stop interrupts goes on at
the next start. Kafka: ReplicaAlterLogDirsManager, ReplicaAlterLogDirsThread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.moving.future_log import COPY_BYTES
from odradek.storage.moving.log_moves import future_name

from .throttle import LONGEST_SLEEP_SECONDS, Pace

if TYPE_CHECKING:
    from odradek.broker.admin.config_in_force import ConfigInForce
    from odradek.broker.disk.cold_reads import ColdReads
    from odradek.broker.disk.disk_executor import DiskExecutor
    from odradek.broker.disk.log_sync import LogSyncs
    from odradek.coordinator.metadata.controller import Controller
    from odradek.storage.directories.data_directory import DataDirectory
    from odradek.storage.log import PartitionLog
    from odradek.storage.moving.copy_plan import CopyPlan
    from odradek.storage.moving.future_log import FutureLog
    from odradek.storage.moving.log_moves import LogMoves

    from .cleaning.log_cleaner import LogCleaner

logger = logging.getLogger("odradek.moves")

LEAST_BYTES = 64 << 10  # of one copy, however slow it is to be
AT_A_TIME = 2  # moves that copy: they share the disk threads with everybody's fsyncs


class _EndedError(Exception):
    """The move was cancelled, or the broker stops."""


class LogMover:
    """Begins moves that are asked for, goes on with those that were found, sees them through."""

    def __init__(  # noqa: PLR0913 # the parts of the broker that it joins
        self,
        *,
        moves: LogMoves,
        in_force: ConfigInForce,
        controller: Controller,
        log_syncs: LogSyncs,
        log_cleaner: LogCleaner,
        disk: DiskExecutor,
        cold_reads: ColdReads,
        in_background: Callable[[Coroutine[None, None, None]], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._moves = moves
        self._manager = moves.manager
        self._in_force = in_force
        self._controller = controller
        self._log_syncs = log_syncs
        self._cleaner = log_cleaner
        self._retention = log_cleaner.retention
        self._disk = disk
        self._cold_reads = cold_reads
        self._in_background = in_background
        self._now_ms = now_ms
        self._slots = asyncio.Semaphore(AT_A_TIME)
        loop = asyncio.get_running_loop()
        self._pace = Pace(in_force.move_bytes_per_second, now=loop.time)
        self._closed: asyncio.Future[None] = loop.create_future()

    def resume(self) -> None:
        """Go on with what the last stop has interrupted."""
        for future in list(self._manager.futures.values()):
            logger.info("%s: goes on moving to %s", future.log.name, future.home.path)
            self._in_background(self._see_through(future))

    def close(self) -> None:
        """End at the next pause; what was copied stays for the next start."""
        if not self._closed.done():
            self._closed.set_result(None)

    def alter(self, topic: str, index: int, path: str) -> asyncio.Future[ApiError | None] | None:
        """Have the partition in the directory of that name: when this returns it is on its way.

        To be waited for: whether the directory it goes to could be prepared. None: nothing to do.
        Raises ApiError: INVALID_TOPIC_EXCEPTION, LOG_DIR_NOT_FOUND, UNKNOWN_TOPIC_OR_PARTITION,
        REPLICA_NOT_AVAILABLE, INVALID_REPLICA_ASSIGNMENT (cordoned), KAFKA_STORAGE_ERROR.
        """
        future_name(topic, index)  # a name that is too long is refused first
        home = self._home(path)
        log = self._log(topic, index)
        future = self._manager.futures.get((topic, index))
        if future is not None and future.home is not home:
            logger.info("%s: the move to %s is cancelled", log.name, future.home.path)
            self._manager.drop_future(future.key, self._now_ms())
            self._assign_to(log, self._manager.directory_of(log))
            future = None
        if future is None and self._manager.directory_of(log) is not home:
            future = self._moves.begin(log, home)
            logger.info("%s: begins to move to %s", log.name, home.path)
            return self._begin(future)
        return None

    def _home(self, path: str) -> DataDirectory:
        config = self._in_force.current
        if path not in (str(one.absolute()) for one in config.data_directories):
            raise ApiError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not among the log directories")
        online = {str(directory.path): directory for directory in self._manager.directories}
        if path not in online:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline")
        if online[path].path in config.cordoned_directories:
            text = f"Log directory {path} is cordoned"
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
        return online[path]

    def _log(self, topic: str, index: int) -> PartitionLog:
        known = self._controller.metadata.topics.get(topic)
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

    def _begin(self, future: FutureLog) -> asyncio.Future[ApiError | None]:
        prepared: asyncio.Future[ApiError | None] = asyncio.get_running_loop().create_future()
        self._in_background(self._move(future, prepared))
        return prepared

    async def _move(self, future: FutureLog, prepared: asyncio.Future[ApiError | None]) -> None:
        refusal = await self._prepare(future)
        prepared.set_result(refusal)
        if refusal is None:
            await self._see_through(future)

    async def _prepare(self, future: FutureLog) -> ApiError | None:
        """Why it cannot be moved there."""
        try:
            await self._disk.run(future.prepare)
        except OSError as error:
            self._give_up(future, error)
            text = f"{future.log.name} cannot be moved to {future.home.path}: {error}"
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, text)
        return None

    async def _see_through(self, future: FutureLog) -> None:
        async with self._slots:
            source = self._manager.directory_of(future.log) if self._goes_on(future) else None
            try:
                await self._copy(future)
            except _EndedError:
                return
            except (ApiError, OSError) as error:
                self._give_up(future, error)
                return
            assert source is not None
            logger.info("%s: has moved to %s", future.log.name, future.log.directory)
            await self._settle(future.log, source, future.home)

    async def _copy(self, future: FutureLog) -> None:
        """Once the new directory holds all records, everything on the disk says so, too."""
        await self._cleaner.call_off([future.key])  # and it does not begin again until the end
        await self._catch_up(future)
        await self._carry_out(future, await self._cold_reads.look_up(future.reveal))
        await self._disk.run(self._manager.write_log_starts)
        self._assign_to(future.log, future.home)
        await self._log_syncs.flush(self._controller.log)
        while True:
            await self._cold_reads.look_up(future.look_at_the_rest)
            await self._catch_up(future)
            if not self._retention.removes_from(future.key):
                break
            await self._retention.wait_for([future.key])
        self._moves.promote(future, self._now_ms())

    async def _catch_up(self, future: FutureLog) -> None:
        """Copy until little is left. On return nobody else has had a turn since it was looked."""
        while True:
            await self._keep_to_the_rate(future)
            self._check(future)
            rate = self._pace.bytes_per_second
            most_bytes = COPY_BYTES if rate < 0 else max(int(rate), LEAST_BYTES)
            plan = await self._cold_reads.look_up(partial(future.next_copy, most_bytes))
            self._check(future)
            if plan is None:
                return
            await self._carry_out(future, plan)

    async def _carry_out(self, future: FutureLog, plan: CopyPlan) -> None:
        await self._disk.run(plan.run)
        future.note(plan)
        self._pace.note(plan.size_bytes)

    async def _keep_to_the_rate(self, future: FutureLog) -> None:
        """Wait until more may be copied; the rate may change meanwhile."""
        self._pace.bytes_per_second = self._in_force.move_bytes_per_second
        while self._goes_on(future) and (early := self._pace.early_seconds()) > 0:
            await asyncio.wait([self._closed], timeout=min(early, LONGEST_SLEEP_SECONDS))
            self._pace.bytes_per_second = self._in_force.move_bytes_per_second
        self._pace.restart()

    def _check(self, future: FutureLog) -> None:
        if not self._goes_on(future):
            raise _EndedError

    def _goes_on(self, future: FutureLog) -> bool:
        return not (self._closed.done() or future.is_cancelled)

    def _assign_to(self, log: PartitionLog, home: DataDirectory) -> None:
        """Tell the metadata where the replica is to be found."""
        self._controller.assign_directory(*log.key, home.directory_id, self._now_ms())

    def _give_up(self, future: FutureLog, error: ApiError | OSError) -> None:
        if future.is_cancelled:
            return  # that is why it has failed: its directory is gone
        log, manager = future.log, self._manager
        logger.error("%s: cannot be moved to %s: %s", log.name, future.home.path, error)
        source = manager.directory_of(log)
        if isinstance(error, OSError):
            of_source = str(error.filename or "").startswith(f"{log.directory}/")
            manager.on_directory_error(source if of_source else future.home, error)
        manager.drop_future(future.key, self._now_ms())
        if source.is_online:
            self._assign_to(log, source)

    async def _settle(self, log: PartitionLog, source: DataDirectory, home: DataDirectory) -> None:
        """Have the disk know of the new names, and of where recovery begins."""
        for directory in (home, source):  # first the new name
            with suppress(OSError):  # then that directory is offline
                await self._log_syncs.run(partial(self._moves.sync_names, directory), directory)
        await self._log_syncs.flush_unasked(log)
        for write in (self._manager.write_recovery_points, self._manager.write_log_starts):
            await self._disk.run(write)
        await self._cleaner.save()
