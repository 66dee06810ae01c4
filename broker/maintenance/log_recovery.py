"""Recovers, while the broker serves, the logs that were too large to be recovered before.

    found -> a recovering process reads it -> opened on the loop -> `on_ready`: it is led and served

Until then a partition has no leader in Metadata (LEADER_NOT_AVAILABLE), and Produce, Fetch and
ListOffsets answer NOT_LEADER_OR_FOLLOWER: the clients look for its leader again and wait. Every
data directory has num.recovery.threads.per.data.dir processes, but together there are no more than
processors. The smallest logs come first. One that a topic's deletion, or a failed directory, takes
away is left alone at once: its process is killed before the files are touched.

Internal topics come here only when a full disk has kept them from being opened: what is in them
must be known before the broker listens.

Kafka recovers all logs before it serves any: LogManager.loadLogs.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from odradek.protocol.batch_header import CorruptRecordError

from .workers.recovery_messages import Recovered, RecoveryFailed
from .workers.recovery_worker import RecoveryWorker

if TYPE_CHECKING:
    from odradek.config.topic_config import TopicConfig
    from odradek.storage.directories.data_directory import DataDirectory
    from odradek.storage.directories.found_log import FoundLog
    from odradek.storage.log import PartitionLog
    from odradek.storage.log_manager import LogManager

logger = logging.getLogger("odradek.recovery")


class LogRecovery:
    """`topic_config` gives a topic's configuration in force; `on_ready` hears of each log."""

    def __init__(
        self,
        manager: LogManager,
        *,
        topic_config: Callable[[str], TopicConfig],
        on_ready: Callable[[PartitionLog], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._manager = manager
        self._topic_config = topic_config
        self._on_ready = on_ready
        self._now_ms = now_ms
        self._tasks: list[asyncio.Task[None]] = []
        self.at_work: dict[tuple[str, int], RecoveryWorker] = {}
        manager.on_abandoned = self._abandoned

    def begin(
        self, processes_per_directory: int, waiting: Sequence[FoundLog] | None = None
    ) -> None:
        """Recover what waits, in the background: these logs, or (None) all."""
        if waiting is None:
            waiting = self._manager.waiting()
        if not waiting:
            return
        size = sum(log.unflushed_bytes for log in waiting)
        logger.info(
            "recovering %d logs of %d MiB while the others are served", len(waiting), size >> 20
        )
        by_directory: dict[DataDirectory, list[FoundLog]] = {}
        for log in reversed(waiting):
            by_directory.setdefault(log.directory, []).append(log)
        processors = asyncio.Semaphore(os.cpu_count() or 1)
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks += [
            asyncio.get_running_loop().create_task(self._work_through(logs, processors))
            for logs in by_directory.values()
            for _ in range(min(processes_per_directory, len(logs)))
        ]

    async def finished(self) -> None:
        """Return when nothing is left to recover."""
        await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        """Stop: what is not recovered is recovered at the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _work_through(self, logs: list[FoundLog], processors: asyncio.Semaphore) -> None:
        """Recover one after another; the list is shared, and the last one is next."""
        worker: RecoveryWorker | None = None
        async with processors:
            try:
                while logs:
                    log = logs.pop()
                    if not self._is_wanted(log):
                        continue
                    if worker is None or not worker.is_alive:
                        worker = await RecoveryWorker.start()
                    await self._recover(log, worker)
            except OSError as error:
                logger.error("no log can be recovered, no process can be started: %s", error)
            except Exception:
                logger.exception("recovering logs has ended early")
            finally:
                if worker is not None:
                    await worker.end()

    async def _recover(self, log: FoundLog, worker: RecoveryWorker) -> None:
        task = self._manager.task_of(log, self._topic_config(log.topic), self._now_ms())
        self.at_work[log.key] = worker
        try:
            ending = await worker.recover(task, logger.info)
        finally:
            self.at_work.pop(log.key, None)
        if self._is_wanted(log):
            if isinstance(ending, Recovered):
                self._open(log, ending)
            else:
                self._manager.give_up(log, _error_of(ending))

    def _open(self, found: FoundLog, recovered: Recovered) -> None:
        config = self._topic_config(found.topic)
        try:
            log = self._manager.open_found(
                found, config, now_ms=self._now_ms(), recovered=recovered.recent
            )
        except (OSError, CorruptRecordError) as error:
            self._manager.give_up(found, error)
        else:
            self._on_ready(log)
            left = len(self._manager.waiting())
            logger.info(
                "%s is recovered and served, it ends at %d; %d logs left",
                log.name,
                log.log_end_offset,
                left,
            )

    def _is_wanted(self, log: FoundLog) -> bool:
        return log in self._manager.waiting()

    def _abandoned(self, log: FoundLog) -> None:
        worker = self.at_work.pop(log.key, None)
        if worker is not None:
            worker.stop_now()


def _error_of(failure: RecoveryFailed) -> Exception:
    return failure.error or CorruptRecordError(failure.reason)
