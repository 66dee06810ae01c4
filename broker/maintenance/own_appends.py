"""Appends batches that the broker has made itself, with the checks and durability of a Produce."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from odradek.broker.disk.cold_reads import THE_BROKER, ColdReads
from odradek.broker.disk.disk_space import DiskSpace
from odradek.broker.disk.log_sync import LogSyncs
from odradek.broker.processes.record_walks import RecordWalks
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.record_walk import WalkedRecords, WalkTooLongError


class OwnAppends:
    """Appends to any partition."""

    def __init__(
        self,
        *,
        log_manager: LogManager,
        log_syncs: LogSyncs,
        disk_space: DiskSpace,
        cold_reads: ColdReads,
        record_walks: RecordWalks,
        now_ms: Callable[[], int],
    ) -> None:
        """`now_ms` is the wall clock."""
        self.now_ms = now_ms
        self._log_manager = log_manager
        self._log_syncs = log_syncs
        self._disk_space = disk_space
        self._cold_reads = cold_reads
        self._record_walks = record_walks

    async def append(self, topic: str, partition: int, batch: bytearray) -> int:
        """Append a batch, and return its base offset.

        Raises ApiError: then nothing is appended, or it could not be synced.
        """
        walked: WalkedRecords | None = None
        while True:
            log = self._log_manager.get(topic, partition)
            self._disk_space.check(log)
            if not log.is_prepared:
                await self._cold_reads.look_up(log.prepare_append)
                continue
            try:
                appended = log.append(batch, now_ms=self.now_ms(), walked=walked)
                break
            except WalkTooLongError as error:
                walked = await self._walk(error)
        await self._sync(log)
        return appended.base_offset

    async def _walk(self, error: WalkTooLongError) -> WalkedRecords:
        walked = await self._record_walks.run(error.walk, error.batch, THE_BROKER)
        # The walk of a message set would return the batch that it was converted to.
        assert isinstance(walked, WalkedRecords)
        return walked

    async def _sync(self, log: PartitionLog) -> None:
        """Wait for the fsync, if flush.messages demands one. Raises KAFKA_STORAGE_ERROR."""
        sync = self._log_syncs.due.pop(log, None)
        if sync is not None:
            await asyncio.shield(sync)  # others wait for it too
