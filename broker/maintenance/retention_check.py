"""Deletes old segments of all logs: decided on the event loop, renamed by a disk thread.

First the segments are removed from the log in memory, then a disk thread renames their files. The
log's directory must not be renamed in between: code that deletes or moves a log calls
LogCleaner.cancel_rounds first, which awaits `wait_for`. A segment whose files could not be renamed
is put back into the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial

from odradek.broker.disk.cold_reads import ColdReads
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.protocol.errors import ApiError
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.retention import OldSegments, find_old_segments, log_deletion
from odradek.storage.segment_removal import SegmentRemoval
from odradek.storage.topic_partition import TopicPartition

logger = logging.getLogger("odradek.retention")

LOGS_PER_TURN = 100  # logs that are checked before other tasks of the event loop run


class RetentionCheck:
    """Applies retention. One object serves all logs; several checks may run at the same time."""

    def __init__(
        self,
        manager: LogManager,
        cold_reads: ColdReads,
        disk: DiskExecutor,
        now_ms: Callable[[], int],
    ) -> None:
        self._manager = manager
        self.cold_reads = cold_reads
        self._disk = disk
        self._now_ms = now_ms
        self._removals: dict[TopicPartition, asyncio.Task[None]] = {}

    async def run(self, is_wanted: Callable[[PartitionLog], bool]) -> None:
        """Delete the segments that have expired in the logs for which `is_wanted` is true."""
        for number, log in enumerate(self._manager.logs(), 1):
            if is_wanted(log):
                try:
                    await self._check(log, is_wanted)
                except ApiError as error:
                    logger.error("retention of %s: %s", log.name, error)
            elif number % LOGS_PER_TURN:
                continue
            await asyncio.sleep(0)

    def removes_from(self, key: TopicPartition) -> bool:
        """Whether files of that log are being renamed."""
        return key in self._removals

    async def wait_for(self, keys: Iterable[TopicPartition]) -> None:
        """Return when no file of these logs is being renamed."""
        running = [self._removals[key] for key in keys if key in self._removals]
        if running:
            await asyncio.wait(running)

    async def close(self) -> None:
        """Return when no file of any log is being renamed."""
        await self.wait_for(list(self._removals))

    async def _check(self, log: PartitionLog, is_wanted: Callable[[PartitionLog], bool]) -> None:
        now_ms = self._now_ms()
        found = await self.cold_reads.look_up(partial(self._find, log, is_wanted, now_ms))
        if found:
            removal = log.begin_removal(log_deletion(log, found), now_ms)
            task = asyncio.ensure_future(self._remove(log, removal))
            self._removals[log.key] = task
            await asyncio.shield(task)  # the files are renamed even if this check is cancelled

    def _find(
        self, log: PartitionLog, is_wanted: Callable[[PartitionLog], bool], now_ms: int
    ) -> list[OldSegments]:
        """Find the expired segments; none if the log was deleted or may not be changed any more."""
        is_current = self._manager.find(*log.key) is log and log.is_online
        if not is_current or self.removes_from(log.key) or not is_wanted(log):
            return []
        return find_old_segments(log, now_ms)

    async def _remove(self, log: PartitionLog, removal: SegmentRemoval) -> None:
        try:
            await self._disk.run(removal.run)
        except OSError as error:
            log.failed("delete segments", error)
        finally:
            removal.finish()
            del self._removals[log.key]
