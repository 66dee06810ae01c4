"""One round of cleaning: a log, and the process that cleans it.

The process writes `.cleaned` files and says when a group of them is finished; the broker lets each
take the place of the old segments, in the order in which they come. What needs no disk happens on
the loop, the sync in a disk thread. Meanwhile nobody else may delete segments of this log: see
LogCleaner. A round that is cancelled ends behind the swap it is at; what it has swapped stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.broker.maintenance.workers.cleaner_messages import Ending, Moved, Ready, Unusable
from odradek.protocol.errors import ApiError
from odradek.storage.cleaning.plan import task_for
from odradek.storage.cleaning.task import CleanedGroup
from odradek.storage.directories.disk_errors import lacks_descriptors

from .cleaner_worker import WorkerLostError

if TYPE_CHECKING:
    from odradek.broker.disk.disk_executor import DiskExecutor
    from odradek.storage.cleaning.plan import LogToClean
    from odradek.storage.cleaning.segment_swap import SegmentSwap
    from odradek.storage.log import PartitionLog
    from odradek.storage.log_manager import LogManager

    from .cleaner_worker import CleanerWorker

# A process that works says something every second, unless it waits for the disk.
PATIENCE_SECONDS = 300.0
RETRY_SECONDS = 1.0  # after which a swap that was refused goes on


class RoundCancelledError(Exception):
    """Somebody needs the log for himself, or the broker stops."""


class CleaningRound:
    """See the module. `moved_bytes` have been read and written so far."""

    def __init__(
        self,
        log: PartitionLog,
        to_clean: LogToClean,
        *,
        manager: LogManager,
        disk: DiskExecutor,
        now_ms: Callable[[], int],
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.log = log
        self.to_clean = to_clean
        self.began_ms = now_ms()
        self.moved_bytes = 0
        self._manager = manager
        self._disk = disk
        self._now_ms = now_ms
        self._patience_seconds = patience_seconds
        self._worker: CleanerWorker | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """Have it end soon."""
        self._is_cancelled = True
        if self._worker is not None:
            self._worker.kill()

    async def run(self, worker: CleanerWorker) -> Ending:
        """How the process says it ended.

        Raises RoundCancelledError, WorkerLostError, and ApiError for a log that went offline. What
        is left of it in the log's directory is to be removed once the process rests.
        """
        self._worker = worker
        self._check()
        worker.send(task_for(self.log, self.to_clean, self._now_ms()))
        try:
            while True:
                message = await worker.receive(self._patience_seconds)
                self._check()
                if isinstance(message, CleanedGroup):
                    await self._swap(message)
                elif isinstance(message, Moved):
                    self.moved_bytes += message.size_bytes
                elif not isinstance(message, Ready | Unusable):
                    return message
        except WorkerLostError:
            self._check()  # that is why it is lost
            raise

    def _check(self) -> None:
        if self._is_cancelled:
            raise RoundCancelledError

    async def _swap(self, group: CleanedGroup) -> None:
        """Replace the old segments of a group. Once that has begun it can only go on.

        The system may refuse a file descriptor, or room for a name, for a while: then it is tried
        again. Where the round is cancelled meanwhile, the log goes offline until a restart.
        """
        log = self.log
        swap = log.stage_replacement(group.segments, self._now_ms())
        while not (
            await self._is_synced(swap)
            and log.complete_replacement(swap, group.replaced, self._now_ms())
        ):
            if self._is_cancelled:
                log.take_offline("a swap of its segments is completed at the next start")
                raise RoundCancelledError
            await asyncio.sleep(RETRY_SECONDS)

    async def _is_synced(self, swap: SegmentSwap) -> bool:
        """False: the directory could not be opened, as too many files are open."""
        home = self._manager.directory_of(self.log)
        try:
            await self._disk.run(swap.sync)
        except OSError as error:
            if lacks_descriptors(error):
                return False
            self._manager.sync_failed(home, error)
        return True

    async def tidy_up(self) -> None:
        """Remove what the process has left; it does not write any more."""
        if self.log.is_online:
            try:
                await self._disk.run(self.log.discard_cleaned)
            except ApiError:
                return  # logged by the log, whose directory is offline now
