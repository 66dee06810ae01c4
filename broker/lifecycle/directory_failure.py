"""What follows when a log directory goes offline: its partitions stop, the others live on.

The log manager has stopped serving its logs by then: they answer KAFKA_STORAGE_ERROR, and Metadata
says that nobody leads them. Left to do: whoever waits for their records looks again, the groups
kept there are told to look for another coordinator, and the metadata log is told that the directory
is not online and that its partitions have no leader. That is synced before anybody can rely on it:
at the next start, with the directory back, they are led in a new epoch.

Without the metadata directory, or any data directory, there is nothing left to serve: the broker
ends, as Kafka halts. Kafka: ReplicaManager.handleLogDirFailure, LogManager.handleLogDirFailure.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from ...protocol.errors import ApiError
from .startup import directories_of

if TYPE_CHECKING:
    from ...storage.directories.data_directory import DataDirectory
    from ..broker import Broker

logger = logging.getLogger("odradek")


def directory_failed(broker: Broker, directory: DataDirectory) -> None:
    """To be called on the loop, once the log manager has taken the directory offline."""
    manager = broker.log_manager
    broker.log_cleaner.directory_failed(directory)
    for log in manager.logs():
        if manager.directory_of(log) is directory:
            log.tell_waiting()
            broker.coordinator_lost(log)
    reason = why_no_more(broker, directory)
    if reason is not None and not broker.failure.done():
        broker.failure.set_result(reason)
    if reason is None and not broker.is_closing:
        broker.in_background(tell_the_metadata(broker, directory))


async def tell_the_metadata(broker: Broker, directory: DataDirectory) -> None:
    """Write down, and sync, that the directory is offline and who has no leader now."""
    try:
        leaderless = broker.controller.directories_offline(
            [directory.directory_id], directories_of(broker.log_manager), broker.now_ms()
        )
        await broker.metadata_sync.sync()
    except ApiError as error:
        logger.error("the metadata log does not say that %s is offline: %s", directory.path, error)
    else:
        logger.info("%d partitions in %s have no leader now", len(leaderless), directory.path)


def why_no_more(broker: Broker, directory: DataDirectory) -> str | None:
    """Why the broker cannot go on without this directory; None: it can."""
    if directory.path == broker.config.metadata_directory.absolute():
        return f"the metadata directory {directory.path} failed: {directory.offline_reason}"
    if not broker.log_manager.homes:
        return f"all log directories failed, the last was {directory.path}"
    return None
