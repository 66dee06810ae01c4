"""How far each worker has applied the metadata, and whether it serves.

A change of the metadata is answered when all workers have applied it: a client that creates a topic
may write to it at once. A worker that has ended counts as well, because it is started again. If it
takes longer than APPLY_SECONDS, the change is answered without it.
"""

from __future__ import annotations

import asyncio
import logging

from odradek.storage.log import PartitionLog

from .log_sync import LogSync, LogSyncs

logger = logging.getLogger("odradek.workers")

APPLY_SECONDS = 10.0


class WorkerProgress:
    """The workers 1 to `count`. With none of them, everything is applied at once."""

    def __init__(self, count: int) -> None:
        self._applied = dict.fromkeys(range(1, count + 1), 0)
        self._serving: set[int] = set()
        self._changed = asyncio.Event()

    def is_serving(self, process: int) -> bool:
        """Whether a worker accepts connections."""
        return process in self._serving

    def not_serving(self) -> list[int]:
        """The workers that do not accept connections."""
        return [each for each in self._applied if each not in self._serving]

    def note_serving(self, process: int) -> None:
        """Note that a worker accepts connections."""
        self._serving.add(process)

    def note_ended(self, process: int) -> None:
        """Note that a worker has ended."""
        self._serving.discard(process)

    def note_applied(self, process: int, next_offset: int) -> None:
        """Note that a worker has applied the metadata up to an offset (excluded)."""
        self._applied[process] = next_offset
        self._changed.set()

    async def applied(self, next_offset: int) -> None:
        """Return when all workers have applied the metadata up to an offset (excluded)."""
        late = self._late(next_offset)
        if not late:
            return
        try:
            async with asyncio.timeout(APPLY_SECONDS):
                while late := self._late(next_offset):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            logger.warning("workers %s have not applied a change of the metadata yet", late)

    def _late(self, next_offset: int) -> list[int]:
        return [each for each, applied in self._applied.items() if applied < next_offset]


class SyncWithWorkers(LogSync):
    """The sync of the metadata log, which also waits until the workers have applied it."""

    def __init__(self, log: PartitionLog, syncs: LogSyncs, progress: WorkerProgress) -> None:
        super().__init__(log, syncs.flush)
        self._metadata_log = log
        self._progress = progress

    async def sync(self) -> None:
        """Return when all of the log is on the disk and applied. Raises KAFKA_STORAGE_ERROR."""
        end_offset = self._metadata_log.log_end_offset
        await super().sync()
        await self._progress.applied(end_offset)
