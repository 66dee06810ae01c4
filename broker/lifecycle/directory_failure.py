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

import logging

from odradek.broker.broker import Broker
from odradek.broker.startup.startup import directories_of
from odradek.protocol.errors import ApiError
from odradek.storage.directories.data_directory import DataDirectory

logger = logging.getLogger("odradek")


def watch_directories(broker: Broker) -> None:
    """Handle failures of log directories from now on, and those since the broker registered."""
    broker.log_manager.on_offline = lambda directory: broker.loop.call_soon_threadsafe(
        directory_failed, broker, directory
    )
    for directory in broker.registered_directories:
        if not directory.is_online:
            directory_failed(broker, directory)


def directory_failed(broker: Broker, directory: DataDirectory) -> None:
    """Handle one failure, on the loop, after the log manager has taken the directory offline."""
    manager = broker.log_manager
    broker.maintenance.cleaner.directory_failed(directory)
    for log in manager.logs():
        if manager.directory_of(log) is directory:
            log.notify_waiters()
            broker.coordinator_logs.log_lost(log)
    reason = _why_fatal(broker, directory)
    if reason is not None and not broker.failure.done():
        broker.failure.set_result(reason)
    if reason is None and not broker.background.is_closed:
        broker.background.start(_record_failure(broker, directory))


async def _record_failure(broker: Broker, directory: DataDirectory) -> None:
    """Record in the metadata log that the directory is offline and its partitions leaderless."""
    try:
        leaderless = broker.controller.directories_offline(
            [directory.directory_id], directories_of(broker.log_manager), broker.clock.now_ms()
        )
        await broker.metadata_log.sync()
    except ApiError as error:
        logger.error(
            "the metadata log does not record that %s is offline: %s", directory.path, error
        )
    else:
        logger.info("%d partitions in %s have no leader now", len(leaderless), directory.path)


def _why_fatal(broker: Broker, directory: DataDirectory) -> str | None:
    """Return why the broker must stop without this directory, or None if it can go on."""
    if directory.path == broker.config.metadata_directory.absolute():
        return f"the metadata directory {directory.path} failed: {directory.offline_reason}"
    if not broker.log_manager.data_directories:
        return f"all log directories failed, the last was {directory.path}"
    return None
