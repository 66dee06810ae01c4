"""Waits until everything appended to a log so far is on the disk; one fsync serves all who wait.

While an fsync runs, those who come wait for the next one, which starts when the first ends: what
they wrote may not be covered by the one under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..storage.log import PartitionLog
    from .disk_executor import DiskExecutor


class LogSync:
    """Group commit for one log."""

    def __init__(self, log: PartitionLog, disk: DiskExecutor, now_ms: Callable[[], int]) -> None:
        self._log = log
        self._disk = disk
        self._now_ms = now_ms
        self._running: asyncio.Task[None] | None = None
        self._next: asyncio.Task[None] | None = None

    async def sync(self) -> None:
        """Return when all that is in the log now is on the disk. Raises the fsync's OSError."""
        if self._log.recovery_point >= self._log.log_end_offset:
            return
        if self._next is None:
            self._next = asyncio.ensure_future(self._after(self._running))
        # Shielded: one client that goes away must not cancel the others' fsync.
        await asyncio.shield(self._next)

    async def _after(self, previous: asyncio.Task[None] | None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        self._running, self._next = self._next, None
        plan = self._log.flush_plan()
        if plan is not None:
            await self._disk.run(plan.run)
            self._log.mark_flushed(plan, self._now_ms())
