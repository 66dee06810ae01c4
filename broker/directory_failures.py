"""Handles the failure of a log directory: its partitions stop, the other directories go on.

The log manager has already taken the directory's logs offline: they answer KAFKA_STORAGE_ERROR, and
Metadata reports no leader for them. The rest is done here:

- fetches that wait for records of these logs are woken; groups whose log is lost have no
  coordinator any more, so their clients send FindCoordinator again;
- the metadata log records that the directory is offline and its partitions have no leader, and is
  synced. When the broker starts with the directory again, it leads them in a new epoch.

Without the metadata directory, or without any data directory, the broker ends, as Kafka halts.
Kafka: ReplicaManager.handleLogDirFailure, LogManager.handleLogDirFailure.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from odradek.broker.common.background_tasks import BackgroundTasks
from odradek.broker.common.clock import Clock
from odradek.broker.maintenance.cleaning.log_cleaner import LogCleaner
from odradek.broker.maintenance.metadata_log import MetadataLog
from odradek.broker.startup.startup import directories_of
from odradek.config.broker_config import BrokerConfig
from odradek.coordinator.metadata.controller import Controller
from odradek.protocol.errors import ApiError
from odradek.storage.data_directory import DataDirectory
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager

logger = logging.getLogger("odradek")


class DirectoryFailures:
    """Handles all failures from now on. `fatal` gets the reason why the broker cannot go on."""

    def __init__(  # noqa: PLR0913 # the parts of the broker that it connects
        self,
        *,
        log_manager: LogManager,
        cleaner: LogCleaner,
        log_lost: Callable[[PartitionLog], object],
        controller: Controller,
        metadata_log: MetadataLog,
        background: BackgroundTasks,
        config: Callable[[], BrokerConfig],
        clock: Clock,
        registered: Iterable[DataDirectory],
    ) -> None:
        """Handle the failures of `registered` directories, too, since the broker registered.

        `log_lost` is called with each log that its coordinator loses.
        """
        loop = asyncio.get_running_loop()
        self.fatal: asyncio.Future[str] = loop.create_future()
        self._log_manager = log_manager
        self._cleaner = cleaner
        self._log_lost = log_lost
        self._controller = controller
        self._metadata_log = metadata_log
        self._background = background
        self._config = config
        self._clock = clock
        log_manager.on_offline = lambda directory: loop.call_soon_threadsafe(
            self._failed, directory
        )
        for directory in registered:
            if not directory.is_online:
                self._failed(directory)

    def _failed(self, directory: DataDirectory) -> None:
        """Handle one, on the loop, after the log manager has taken the directory offline."""
        manager = self._log_manager
        self._cleaner.directory_failed(directory)
        for log in manager.logs():
            if manager.directory_of(log) is directory:
                log.notify_waiters()
                self._log_lost(log)
        reason = self._why_fatal(directory)
        if reason is not None and not self.fatal.done():
            self.fatal.set_result(reason)
        if reason is None and not self._background.is_closed:
            self._background.start(self._record(directory))

    async def _record(self, directory: DataDirectory) -> None:
        """Record in the metadata log what is offline, and that its partitions have no leader."""
        try:
            leaderless = self._controller.directories_offline(
                [directory.directory_id], directories_of(self._log_manager), self._clock.now_ms()
            )
            await self._metadata_log.sync()
        except ApiError as error:
            logger.error(
                "the metadata log does not record that %s is offline: %s", directory.path, error
            )
        else:
            logger.info("%d partitions in %s have no leader now", len(leaderless), directory.path)

    def _why_fatal(self, directory: DataDirectory) -> str | None:
        """Return why the broker must stop without this directory, or None if it can go on."""
        if directory.path == self._config().metadata_directory.absolute():
            return f"the metadata directory {directory.path} failed: {directory.offline_reason}"
        if not self._log_manager.data_directories:
            return f"all log directories failed, the last was {directory.path}"
        return None
