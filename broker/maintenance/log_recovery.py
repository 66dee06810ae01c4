"""Recovers large logs in the background while the broker serves the others.

    found -> read by a recovery process -> opened by a disk thread -> `on_ready`: led and served

Until then the partition has no leader in Metadata (LEADER_NOT_AVAILABLE), and Produce, Fetch and
ListOffsets answer NOT_LEADER_OR_FOLLOWER, so clients look for its leader again and wait. Every data
directory has num.recovery.threads.per.data.dir processes; all directories together have at most one
per processor. The smallest logs come first. When a log's topic is deleted or its directory fails,
its process is killed. Files of a deleted topic are renamed when no thread opens the log any more.
A directory that fails is unlocked at once, although a thread may still be opening a log there.

Internal topics are recovered here only if a full disk prevented it at start: otherwise their
records are read before the broker listens.

Kafka recovers all logs before it serves any: LogManager.loadLogs.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock

from odradek.broker.disk.disk_executor import DiskExecutor
from odradek.broker.processes.child_process import RecoveryWorker
from odradek.broker.processes.messages import Recovered, RecoveryFailed
from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import CorruptRecordError
from odradek.storage.data_directory import DataDirectory
from odradek.storage.directories.found_log import FoundLog
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager

logger = logging.getLogger("odradek.recovery")

RETRY_SECONDS = 1.0  # until another attempt to start a process


class LogRecovery:
    """`topic_config` returns a topic's current configuration; `on_ready` gets each opened log.

    `total`: how many logs had to be recovered until now.
    """

    def __init__(
        self,
        manager: LogManager,
        disk: DiskExecutor,
        *,
        topic_config: Callable[[str], TopicConfig],
        on_ready: Callable[[PartitionLog], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._manager = manager
        self._disk = disk
        self._topic_config = topic_config
        self._on_ready = on_ready
        self._now_ms = now_ms
        self._tasks: list[asyncio.Task[None]] = []
        self._next_opening = asyncio.Lock()  # a thread opens one log after another
        self._opening = Lock()  # is held by that thread
        self._opened_path: Path | None = None  # of the log that it opens
        self._is_closed = False
        self.total = 0
        self.at_work: dict[tuple[str, int], RecoveryWorker] = {}
        manager.on_abandoned = self._stop_worker_of
        manager.wait_for_opening = self._wait_for_opening

    def begin(
        self, processes_per_directory: int, waiting: Sequence[FoundLog] | None = None
    ) -> None:
        """Recover waiting logs in the background: these, or all (None)."""
        if waiting is None:
            waiting = self._manager.waiting()
        if not waiting:
            return
        self.total += len(waiting)
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
            asyncio.get_running_loop().create_task(self._recover_all(logs, processors))
            for logs in by_directory.values()
            for _ in range(min(processes_per_directory, len(logs)))
        ]

    async def finished(self) -> None:
        """Return when no recovery is running any more."""
        await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        """Stop. The next start recovers the logs that are left."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with self._opening:  # no log is opened after this
            self._is_closed = True

    async def _recover_all(self, logs: list[FoundLog], processors: asyncio.Semaphore) -> None:
        """Recover one log after another. Tasks share the list and take from its end."""
        worker: RecoveryWorker | None = None
        async with processors:
            try:
                while logs:
                    log = logs.pop()
                    if not self._manager.is_waiting(log):
                        continue
                    if worker is not None and not worker.is_alive:
                        await worker.end()
                        worker = None
                    if worker is None:
                        worker = await self._started()
                    if self._manager.is_waiting(log):  # it may have been deleted meanwhile
                        await self._recover(log, worker)
            except Exception:
                logger.exception("recovering logs failed")
            finally:
                if worker is not None:
                    await worker.end()

    async def _started(self) -> RecoveryWorker:
        """Start a process. The system may lack descriptors or processes for some time."""
        is_reported = False
        while True:
            try:
                return await RecoveryWorker.start()
            except OSError as error:
                if not is_reported:
                    logger.error("recovery waits because no process can be started: %s", error)
                is_reported = True
            await asyncio.sleep(RETRY_SECONDS)

    async def _recover(self, log: FoundLog, worker: RecoveryWorker) -> None:
        task = self._manager.task_of(log, self._topic_config(log.topic), self._now_ms())
        self.at_work[log.key] = worker
        try:
            ending = await worker.recover(task, logger.info)
        finally:
            self.at_work.pop(log.key, None)
        if self._manager.is_waiting(log):
            if isinstance(ending, Recovered):
                await self._open(log, ending)
            else:
                self._manager.give_up(log, _error_of(ending))

    async def _open(self, found: FoundLog, recovered: Recovered) -> None:
        # A log with thousands of segments or producers takes long.
        async with self._next_opening:
            config = self._topic_config(found.topic)
            loaded = await self._disk.run(self._load, found, config, self._now_ms(), recovered)
        if loaded is None:
            return
        if not self._manager.is_waiting(found):  # it was deleted, or its directory has failed
            if isinstance(loaded, PartitionLog):
                loaded.take_offline("it is not needed any more")
            return
        log = self._manager.serve_found(found, loaded)
        if log is not None:
            log.update_config(self._topic_config(found.topic))  # it may have changed meanwhile
            self._on_ready(log)
            logger.info(
                "%s is recovered and served, its end offset is %d; %d logs are not served",
                log.name,
                log.log_end_offset,
                len(self._manager.not_open()),
            )

    def _load(
        self, found: FoundLog, config: TopicConfig, now_ms: int, recovered: Recovered
    ) -> PartitionLog | OSError | CorruptRecordError | None:
        with self._opening:
            self._opened_path = found.path
            try:
                if self._is_closed or not self._manager.is_waiting(found):
                    return None
                return self._manager.load_found(found, config, now_ms, recovered.recent)
            finally:
                self._opened_path = None

    def _stop_worker_of(self, log: FoundLog) -> None:
        worker = self.at_work.pop(log.key, None)
        if worker is not None:
            worker.stop_now()

    def _wait_for_opening(self, path: Path) -> None:
        if self._opened_path == path:
            with self._opening:  # the log is not waiting any more: it is not opened after this
                pass


def _error_of(failure: RecoveryFailed) -> Exception:
    return failure.error or CorruptRecordError(failure.reason)
