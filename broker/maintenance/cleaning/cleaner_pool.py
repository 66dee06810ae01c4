"""A pool of cleaning processes.

A process starts when there is work and ends after IDLE_SECONDS without any. An idle process needs
20 MB, so it ends before the log cleaner looks for work the next time; a round that follows at once
reuses it. After a change of settings an idle process ends at once and a working one after its round
(Kafka aborts the round). A change of the rate reaches every process at once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence

from odradek.broker.processes.child_process import CLEANER_COMMAND, CleanerWorker
from odradek.broker.processes.messages import CleanerSettings, Rate
from odradek.config.broker_config import BrokerConfig

IDLE_SECONDS = 10.0
LARGEST_DEDUPE_BUFFER_BYTES = (1 << 31) - 1  # of one process, as in Kafka


class CleanerPool:
    """Starts, reuses and ends cleaning processes. `config` returns the current configuration."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        *,
        command: Sequence[str] = CLEANER_COMMAND,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._config = config
        self._command = command
        self._idle_seconds = idle_seconds
        self._working: set[CleanerWorker] = set()
        self._idle: dict[CleanerWorker, asyncio.TimerHandle] = {}
        self._endings: set[asyncio.Task[None]] = set()

    @property
    def max_workers(self) -> int:
        """The largest number of working processes. One processor is left to the broker."""
        return min(self._config().log_cleaner_threads, max((os.cpu_count() or 1) - 1, 1))

    @property
    def pids(self) -> list[int]:
        """The running processes."""
        return [worker.pid for worker in (*self._working, *self._idle) if worker.is_alive]

    async def take(self) -> CleanerWorker:
        """Return a process for one round; call `give_back` after it. Raises WorkerLostError."""
        self.update()
        worker = self._take_idle() or await CleanerWorker.start(self._settings(), self._command)
        worker.send(self._rate())
        self._working.add(worker)
        return worker

    def _take_idle(self) -> CleanerWorker | None:
        while self._idle:
            worker, timer = self._idle.popitem()
            timer.cancel()
            if worker.is_alive:
                return worker
            self._end(worker)
        return None

    def give_back(self, worker: CleanerWorker, *, is_idle: bool) -> None:
        """Take a process back. It is ended unless it is idle and its settings are current."""
        self._working.discard(worker)
        if is_idle and worker.settings == self._settings():
            loop = asyncio.get_running_loop()
            self._idle[worker] = loop.call_later(self._idle_seconds, self._end, worker)
        else:
            self._end(worker)

    def update(self) -> None:
        """Apply settings that may have changed."""
        for worker in self._working:
            worker.send(self._rate())
        for worker in list(self._idle):
            if worker.settings != self._settings():
                self._end(worker)

    def _settings(self) -> CleanerSettings:
        config, parts = self._config(), self.max_workers
        buffer_bytes = config.log_cleaner_dedupe_buffer_size // parts
        return CleanerSettings(
            dedupe_buffer_bytes=min(buffer_bytes, LARGEST_DEDUPE_BUFFER_BYTES),
            load_factor=config.log_cleaner_io_buffer_load_factor,
            io_buffer_bytes=config.log_cleaner_io_buffer_size // parts // 2,
        )

    def _rate(self) -> Rate:
        return Rate(self._config().log_cleaner_io_max_bytes_per_second / self.max_workers)

    def _end(self, worker: CleanerWorker) -> None:
        timer = self._idle.pop(worker, None)
        if timer is not None:
            timer.cancel()
        ending = asyncio.ensure_future(worker.end())
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    async def close(self) -> None:
        """End the idle processes. No process may be working."""
        for worker in list(self._idle):
            self._end(worker)
        if self._endings:
            await asyncio.wait(self._endings)
