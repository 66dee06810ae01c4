"""What all Fetch requests share: sessions, waiters, cold reads, conversion for old clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from odradek.broker.disk.batch_reads import BatchReads
from odradek.broker.disk.cold_reads import ColdReads
from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.processes.record_walks import RecordWalks
from odradek.storage.files import Files

from .down_conversion import DownConverter
from .fetch_sessions import FetchSessions
from .fetch_waiters import FetchWaiters


class Fetching:
    """The sessions, the Fetch requests that wait, and reads that the event loop does not make."""

    def __init__(
        self,
        *,
        loop: asyncio.AbstractEventLoop,
        files: Files,
        disk: DiskExecutor,
        sessions: FetchSessions,
        max_waiting_bytes: Callable[[], int | None],
    ) -> None:
        """`max_waiting_bytes`: see RecordWalks."""
        self.sessions = sessions
        self.waiters = FetchWaiters(loop)
        self.walks = RecordWalks(max_waiting_bytes)
        self.cold_reads = ColdReads(files, disk, self.walks.run)
        self.batch_reads = BatchReads(files, disk, self.cold_reads)
        self.down_converter = DownConverter(files, disk, self.walks)

    def release_all(self) -> None:
        """Answer all that wait, because the broker stops."""
        self.waiters.release_all()
        self.walks.release_all()
