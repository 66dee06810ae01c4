"""The table of all logs: the log directory of each, and why some are not served.

    open          served, unless a disk error has taken them offline; by_topic has the same logs
    not_open      found in a directory; they wait for their recovery, unless they are unreadable
    unreadable    not served, with the reason: opening, recovery or creation failed, or the
                  directory is offline
    postponed     unreadable only because their directory is full, or too many files are open;
                  retried later

The metadata log is in the table too, but requests cannot name it, and no checkpoint holds it.
"""

from collections import Counter
from collections.abc import Callable
from operator import attrgetter

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.data_directory import DataDirectory
from odradek.storage.disk_errors import is_transient
from odradek.storage.log import PartitionLog
from odradek.storage.moving.future_log import FutureLog
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC
from odradek.storage.topic_partition import TopicPartition

from .found_log import FoundLog

_by_unflushed_bytes: Callable[[FoundLog], int] = attrgetter("unflushed_bytes")


class LogTable:
    """Maps by topic and partition. The methods that return lists may be called on any thread."""

    def __init__(self) -> None:
        self.open: dict[tuple[str, int], PartitionLog] = {}
        self.by_topic: dict[str, dict[int, PartitionLog]] = {}
        self.not_open: dict[TopicPartition, FoundLog] = {}
        self.unreadable: dict[TopicPartition, str] = {}
        self.postponed: dict[TopicPartition, DataDirectory] = {}
        self.futures: dict[TopicPartition, FutureLog] = {}  # logs that are being moved, see moving/
        self.locations: dict[TopicPartition, DataDirectory] = {}  # of the open ones
        self.count_in: Counter[DataDirectory] = Counter()  # how many are open in each

    # --- one log

    def get(self, topic: str, partition: int) -> PartitionLog:
        """The open log of a partition. Raises ApiError, see LogManager.get."""
        log = self.open.get((topic, partition))
        if log is None or topic == CLUSTER_METADATA_TOPIC:  # private to the controller
            raise self._error_for(topic, partition)
        return log

    def _error_for(self, topic: str, partition: int) -> ApiError:
        name = f"{topic}-{partition}"
        reason = self.unreadable.get(TopicPartition(topic, partition))
        if reason is not None:
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, reason)
        if (topic, partition) in self.not_open:
            return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{name} is being recovered")
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}")

    def __contains__(self, key: TopicPartition) -> bool:
        """Whether the partition has a log, open or not."""
        return key in self.open or key in self.not_open

    def put(self, log: PartitionLog, directory: DataDirectory) -> None:
        """Add an open log, stored in `directory`."""
        self.not_open.pop(log.key, None)
        self.open[log.key] = log
        self.by_topic.setdefault(log.topic, {})[log.partition] = log
        former = self.locations.get(log.key)  # of a log that was moved
        if former is not None:
            self.count_in[former] -= 1
        self.count_in[directory] += 1
        self.locations[log.key] = directory

    def take(self, key: TopicPartition) -> tuple[PartitionLog, DataDirectory] | None:
        """Remove and return an open log and its directory; None if it is not open."""
        log = self.open.pop(key, None)
        if log is None:
            return None
        of_topic = self.by_topic[log.topic]
        del of_topic[log.partition]
        if not of_topic:
            del self.by_topic[log.topic]
        directory = self.locations.pop(key)
        self.count_in[directory] -= 1
        return log, directory

    def close(self) -> None:
        """Forget the open logs: they are closed."""
        self.open.clear()
        self.by_topic.clear()

    def give_up(self, found: FoundLog, reason: str) -> None:
        """Mark a log as unreadable."""
        self.not_open[found.key] = found
        self.unreadable[found.key] = reason

    def forget_reasons(self, key: TopicPartition) -> None:
        """Forget why a log was not served: it is deleted."""
        self.unreadable.pop(key, None)
        self.postponed.pop(key, None)

    def postpone_after(self, key: TopicPartition, directory: DataDirectory, error: OSError) -> None:
        """Have the log retried later in its directory if the error is transient."""
        if is_transient(error):
            self.postponed[key] = directory

    def is_waiting(self, found: FoundLog) -> bool:
        """Whether this log, as it was found, waits for recovery."""
        return self.not_open.get(found.key) == found and found.key not in self.unreadable

    # --- many

    def waiting(self) -> list[FoundLog]:
        """The logs that wait for recovery, the smallest first."""
        found = list(self.not_open.items())
        return sorted(
            (log for key, log in found if key not in self.unreadable), key=_by_unflushed_bytes
        )

    def take_postponed(
        self, directory: DataDirectory, at_most: int
    ) -> tuple[list[FoundLog], list[TopicPartition]]:
        """Take postponed logs of a directory: those to recover, and the partitions to create."""
        found: list[FoundLog] = []
        missing: list[TopicPartition] = []
        for key, home in list(self.postponed.items()):
            if home is not directory:
                continue
            if len(found) + len(missing) == at_most:
                break
            del self.postponed[key]
            if self.unreadable.pop(key, None) is None:
                continue  # it was deleted
            log = self.not_open.get(key)
            if log is None:
                missing.append(key)
            else:
                found.append(log)
        return found, missing

    # --- one directory

    def open_in(self, directory: DataDirectory) -> list[PartitionLog]:
        """The open logs of a directory, with the metadata log."""
        return [log for _, log in self._items_in(directory)]

    def partitions_in(self, directory: DataDirectory) -> dict[TopicPartition, PartitionLog]:
        """The open logs of a directory, without the metadata log, as in Kafka's checkpoints."""
        items = self._items_in(directory)
        return {key: log for key, log in items if key.topic != CLUSTER_METADATA_TOPIC}

    def _items_in(self, directory: DataDirectory) -> list[tuple[TopicPartition, PartitionLog]]:
        opened = self.open.copy()
        located = list(self.locations.items())
        return [(key, opened[key]) for key, at in located if at is directory and key in opened]

    def not_open_in(self, directory: DataDirectory) -> list[FoundLog]:
        """The logs that are not open. The checkpoints keep their old offsets."""
        return [log for log in list(self.not_open.values()) if log.directory is directory]

    def futures_in(self, directory: DataDirectory) -> list[FutureLog]:
        """The logs that are being moved to a directory."""
        return [future for future in list(self.futures.values()) if future.home is directory]

    def lose(self, directory: DataDirectory, reason: str) -> list[FoundLog]:
        """Stop serving the logs of an offline directory. Returns those that were not open."""
        for log in self.open_in(directory):
            log.take_offline(reason)
        lost = self.not_open_in(directory)
        postponed = [key for key, home in list(self.postponed.items()) if home is directory]
        for key in (*postponed, *(found.key for found in lost)):
            self.postponed.pop(key, None)
            self.unreadable[key] = reason
        for key, future in list(self.futures.items()):
            if directory in (future.home, self.locations.get(key)):
                future.is_cancelled = True  # the copy is checked when the directory is online again
                del self.futures[key]
        return lost
