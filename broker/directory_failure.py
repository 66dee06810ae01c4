"""What follows when a log directory goes offline: its partitions stop, the others live on.

The log manager has stopped serving its logs by then: they answer KAFKA_STORAGE_ERROR, and Metadata
says that nobody leads them. Left to do: whoever waits for their records looks again, and the groups
kept there are told to look for another coordinator.

Without the metadata directory, or any data directory, there is nothing left to serve: the broker
ends, as Kafka halts. Kafka: ReplicaManager.handleLogDirFailure, LogManager.handleLogDirFailure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..storage.topic_names import CONSUMER_OFFSETS_TOPIC

if TYPE_CHECKING:
    from ..storage.data_directory import DataDirectory
    from .broker import Broker


def directory_failed(broker: Broker, directory: DataDirectory) -> None:
    """To be called on the loop, once the log manager has taken the directory offline."""
    manager = broker.log_manager
    broker.log_cleaner.directory_failed(directory)
    for log in manager.logs():
        if manager.directory_of(log) is directory:
            for look_again in list(log.on_append):
                look_again(log)
            if log.topic == CONSUMER_OFFSETS_TOPIC:
                broker.groups.partition_lost(log.partition)
    reason = why_no_more(broker, directory)
    if reason is not None and not broker.failure.done():
        broker.failure.set_result(reason)


def why_no_more(broker: Broker, directory: DataDirectory) -> str | None:
    """Why the broker cannot go on without this directory; None: it can."""
    if directory.path == broker.config.metadata_directory.absolute():
        return f"the metadata directory {directory.path} failed: {directory.offline_reason}"
    homes = {path.absolute() for path in broker.config.data_directories}
    if not any(one.path in homes for one in broker.log_manager.directories):
        return f"all log directories failed, the last was {directory.path}"
    return None
