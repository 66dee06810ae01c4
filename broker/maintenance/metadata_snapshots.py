"""Writes snapshots of the metadata log while the broker serves requests.

The image is taken in one step. Its records are encoded on the event loop a hundred at a time, and a
disk thread writes and syncs the file. A snapshot may only contain records that are durable, so the
log is synced first. After a full disk, the next due snapshot is the retry.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from odradek.broker.disk.cold_reads import ColdReads
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.disk.log_sync import LogSync
from odradek.coordinator.metadata.controller import Controller
from odradek.coordinator.metadata.metadata_image import MetadataImage
from odradek.coordinator.metadata.metadata_snapshot import snapshot_pieces
from odradek.coordinator.metadata.quorum import voter_records
from odradek.coordinator.metadata.snapshot_keeping import SnapshotKeeper
from odradek.coordinator.runtime.record_codec import MetadataRecordCodec
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError
from odradek.storage.filenames import MetadataSnapshotName

logger = logging.getLogger("odradek.metadata")


class MetadataSnapshots:
    """Writes a snapshot when one is due, and deletes old ones."""

    def __init__(
        self,
        controller: Controller,
        keeper: SnapshotKeeper,
        sync: LogSync,
        disk: DiskExecutor,
        cold_reads: ColdReads,
        clock: Callable[[], Now],
    ) -> None:
        self._controller = controller
        self._keeper = keeper
        self._sync = sync
        self._disk = disk
        self._cold_reads = cold_reads
        self._clock = clock

    async def write_if_due(self) -> None:
        """Write a snapshot if one is due."""
        with self._reporting("write a snapshot"):
            timer_ms = self._clock().timer_ms
            reason = await self._cold_reads.look_up(partial(self._keeper.due_reason, timer_ms))
            if reason is not None and not self._controller.metadata.in_transaction:
                await self.write(reason)

    @contextmanager
    def _reporting(self, action: str) -> Iterator[None]:
        """Log errors. An I/O error takes the metadata directory offline, and so ends the broker.

        A snapshot whose name did not sync must not be taken for one: the log before it is deleted.
        """
        log = self._controller.log
        try:
            yield
        except OSError as error:
            if log.is_online:
                log.failed(action, error)
        except ApiError as error:
            if log.is_online:
                logger.error("could not %s: %s", action, error.message)

    async def write(self, reason: str) -> MetadataSnapshotName:
        """Write a snapshot of the metadata as it is now. Raises OSError."""
        now = self._clock()
        log = self._controller.log
        image = MetadataImage.of(self._controller.metadata, log.log_end_offset)
        name = MetadataSnapshotName(image.end_offset, log.leader_epoch)
        self._keeper.note_started(image.end_offset, now.timer_ms)
        await self._sync.sync()
        pieces = []
        for piece in snapshot_pieces(
            voter_records(self._controller.quorum),
            image.records(),
            MetadataRecordCodec.of_cluster(),
            last_contained_ms=image.last_contained_ms,
            now_ms=now.wall_ms,
            epoch=name.epoch,
        ):
            pieces.append(piece)
            await asyncio.sleep(0)
        path = await self._disk.run(self._keeper.store, name, pieces)
        logger.info("wrote %s: %s", path, reason)
        return name

    async def clean(self) -> None:
        """Delete old snapshots and the log before the kept ones."""
        with self._reporting("delete old snapshots"):
            now_ms = self._clock().wall_ms
            await self._cold_reads.look_up(partial(self._keeper.load_headers, now_ms))
            self._keeper.clean(now_ms)
