"""The metadata log of a broker: its fsyncs and its snapshots."""

from __future__ import annotations

from collections.abc import Callable

from odradek.broker.disk.cold_reads import ColdReads
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.disk.log_sync import LogSync, LogSyncs
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.snapshot_keeping import SnapshotKeeper
from odradek.coordinator.runtime.timers import Now

from .metadata_snapshots import MetadataSnapshots


class MetadataLog:
    """The log to which the controller writes, `controller.log`."""

    def __init__(
        self,
        controller: Controller,
        keeper: SnapshotKeeper,
        *,
        log_syncs: LogSyncs,
        disk: DiskExecutor,
        cold_reads: ColdReads,
        clock: Callable[[], Now],
    ) -> None:
        self.log_sync = LogSync(controller.log, log_syncs.flush)
        self.snapshots = MetadataSnapshots(
            controller, keeper, self.log_sync, disk, cold_reads, clock
        )

    async def sync(self) -> None:
        """Return when all of the log is on the disk. Raises KAFKA_STORAGE_ERROR."""
        await self.log_sync.sync()
