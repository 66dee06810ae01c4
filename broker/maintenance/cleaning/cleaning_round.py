"""One round of cleaning: a log, and the process that cleans it.

The process writes `.cleaned` files and reports each finished group of them. The broker replaces the
old segments with each group, in the order of arrival: the renames run on the event loop, in slices,
the sync in a disk thread. During a round nothing else may delete segments of this log: see
LogCleaner. A round that is cancelled during a swap completes the swap first; completed swaps stay.
A truncation of the log ends the swap, and the round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.processes.child_process import CleanerWorker, WorkerLostError
from odradek.broker.processes.messages import CleaningEnding, Moved, Ready, Unusable
from odradek.broker.turns.slices import SliceRunner, Slices
from odradek.protocol.errors import ApiError
from odradek.storage.cleaning.plan import LogToClean, last_records_in_parts, task_for
from odradek.storage.cleaning.segment_swap import SegmentSwap
from odradek.storage.cleaning.task import CleanedGroup
from odradek.storage.disk_errors import lacks_descriptors
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager

# A working process sends a message every second, unless it waits for the disk.
SILENCE_LIMIT_SECONDS = 300.0
RETRY_SECONDS = 1.0  # between the attempts of a swap


class RoundCancelledError(Exception):
    """The log is deleted, moved or truncated, its directory went offline, or the broker stops."""


class CleaningRound:
    """See the module. `began_s`: by the loop's clock. `moved_bytes`: read and written so far."""

    def __init__(
        self,
        log: PartitionLog,
        to_clean: LogToClean,
        *,
        manager: LogManager,
        disk: DiskExecutor,
        slices: SliceRunner,
        now_ms: Callable[[], int],
        silence_limit_seconds: float = SILENCE_LIMIT_SECONDS,
    ) -> None:
        self.log = log
        self.to_clean = to_clean
        self.began_s = asyncio.get_running_loop().time()
        self.moved_bytes = 0
        self._manager = manager
        self._disk = disk
        self._slices = slices
        self._now_ms = now_ms
        self._silence_limit_seconds = silence_limit_seconds
        self._worker: CleanerWorker | None = None
        self._is_cancelled = False

    def cancel(self) -> None:
        """Make `run` end soon."""
        self._is_cancelled = True
        if self._worker is not None:
            self._worker.kill()

    async def run(self, worker: CleanerWorker) -> CleaningEnding:
        """Run the round; returns the process's last message.

        Raises RoundCancelledError, WorkerLostError, and ApiError if the log went offline. Files of
        the round may be left in the log's directory: call `tidy_up` when the process is idle or has
        ended.
        """
        self._worker = worker
        try:
            self._check()
            last_records = bytearray()
            for part in last_records_in_parts(self.log):
                last_records += part
                await asyncio.sleep(0)
            self._check()
            worker.send(task_for(self.log, self.to_clean, self._now_ms(), bytes(last_records)))
            while True:
                message = await worker.receive(self._silence_limit_seconds)
                self._check()
                if isinstance(message, CleanedGroup):
                    await self._swap(message)
                elif isinstance(message, Moved):
                    self.moved_bytes += message.size_bytes
                elif not isinstance(message, Ready | Unusable):
                    return message
        except WorkerLostError:
            self._check()  # a cancelled round killed it
            raise
        finally:
            self._worker = None  # the next round that it works for must not be cancelled with this

    def _check(self) -> None:
        if self._is_cancelled or self.log.truncations != self.to_clean.truncations:
            raise RoundCancelledError

    async def _swap(self, group: CleanedGroup) -> None:
        """Replace the old segments of a group. A swap that has begun cannot be undone.

        The system may lack a file descriptor, or space for a directory entry, for some time: the
        swap is retried. If the round is cancelled meanwhile, the log goes offline until a restart.
        """
        log = self.log
        swap = log.stage_replacement(group.segments, self._now_ms())

        async def complete(slices: Slices) -> bool:
            return log.complete_replacement(swap, group.replaced, slices.of)

        while not (await self._is_synced(swap) and await self._slices.run(complete)):
            if self._is_cancelled:
                log.take_offline("a swap of its segments is completed at the next start")
                raise RoundCancelledError
            await asyncio.sleep(RETRY_SECONDS)

    async def _is_synced(self, swap: SegmentSwap) -> bool:
        """Sync the new names. Returns False if too many files are open to open the directory."""
        home = self._manager.directory_of(self.log)
        try:
            await self._disk.run(swap.sync)
        except OSError as error:
            if lacks_descriptors(error):
                return False
            self._manager.sync_failed(home, error)
        return True

    async def tidy_up(self) -> None:
        """Remove the files of an unfinished group. The process must not be writing any more."""
        if self.log.is_online:
            try:
                await self._disk.run(self.log.discard_cleaned)
            except ApiError:
                return  # the log has logged it, and its directory is offline now
