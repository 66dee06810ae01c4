"""Which logs there are, in which log directory each lies, and why some are not served.

    open          served, unless a disk error has taken them offline
    not_open      found in a directory: waiting for their recovery, if they are not unreadable
    unreadable    not served, and why: they could not be opened, not be recovered or not be made, or
                  their directory is offline
    lack_space    unreadable only for a full disk: they are tried again when there is room

The metadata log stands here too, but is nobody's to ask for, and in no checkpoint.
"""

from collections.abc import Callable
from operator import attrgetter

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.checkpoints import TopicPartition
from odradek.storage.log import PartitionLog
from odradek.storage.moving.future_log import FutureLog
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC

from .data_directory import DataDirectory
from .disk_errors import is_full_disk
from .found_log import FoundLog

_by_work: Callable[[FoundLog], int] = attrgetter("unflushed_bytes")


class LogTable:
    """Everything by topic and partition. Lists are copies, which any thread may make."""

    def __init__(self) -> None:
        self.open: dict[TopicPartition, PartitionLog] = {}
        self.not_open: dict[TopicPartition, FoundLog] = {}
        self.unreadable: dict[TopicPartition, str] = {}
        self.lack_space: set[TopicPartition] = set()
        self.futures: dict[TopicPartition, FutureLog] = {}  # logs on their way, see moving
        self.locations: dict[TopicPartition, DataDirectory] = {}  # of the open ones

    # --- one log

    def get(self, topic: str, partition: int) -> PartitionLog:
        """See LogManager.get."""
        log = self.open.get((topic, partition))
        if log is None or topic == CLUSTER_METADATA_TOPIC:  # that one is nobody's to ask for
            raise self._why_not(topic, partition)
        return log

    def _why_not(self, topic: str, partition: int) -> ApiError:
        name = f"{topic}-{partition}"
        reason = self.unreadable.get((topic, partition))
        if reason is not None:
            return ApiError(ErrorCode.KAFKA_STORAGE_ERROR, reason)
        if (topic, partition) in self.not_open:
            return ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{name} is being recovered")
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}")

    def put(self, log: PartitionLog, directory: DataDirectory) -> None:
        """The log lies in that directory, and is the one of its partition."""
        self.not_open.pop(log.key, None)
        self.open[log.key] = log
        self.locations[log.key] = directory

    def take(self, key: TopicPartition) -> tuple[PartitionLog, DataDirectory] | None:
        """It is not here any more; None where it was not open."""
        log = self.open.pop(key, None)
        return None if log is None else (log, self.locations.pop(key))

    def give_up(self, found: FoundLog, reason: str) -> None:
        """That log cannot be read."""
        self.not_open[found.key] = found
        self.unreadable[found.key] = reason

    def forget_reasons(self, key: TopicPartition) -> None:
        """Whatever kept it from being served, it is deleted now."""
        self.unreadable.pop(key, None)
        self.lack_space.discard(key)

    def note_lack_of_space(self, key: TopicPartition, error: OSError) -> None:
        """If the error says so: what this log needs next is room."""
        if is_full_disk(error):
            self.lack_space.add(key)

    # --- many

    def waiting(self) -> list[FoundLog]:
        """Logs that are still to be recovered, the smallest first."""
        found = list(self.not_open.items())
        return sorted((log for key, log in found if key not in self.unreadable), key=_by_work)

    def space_again(self, directory: DataDirectory) -> tuple[list[FoundLog], list[TopicPartition]]:
        """See LogManager.space_again."""
        found, unmade = [], []
        for key in list(self.lack_space):
            log = self.not_open.get(key)
            if log is not None and log.directory is not directory:
                continue
            self.lack_space.discard(key)
            if self.unreadable.pop(key, None) is None:
                continue  # it was deleted
            if log is None:
                unmade.append(key)
            else:
                found.append(log)
        return found, unmade

    # --- what lies in one directory

    def open_in(self, directory: DataDirectory) -> list[PartitionLog]:
        """Its open logs, the metadata log too."""
        opened = list(self.open.items())
        return [log for key, log in opened if self.locations.get(key) is directory]

    def partitions_in(self, directory: DataDirectory) -> list[PartitionLog]:
        """Its open logs, but not the metadata log, of which Kafka's checkpoints do not speak."""
        return [log for log in self.open_in(directory) if log.topic != CLUSTER_METADATA_TOPIC]

    def not_open_in(self, directory: DataDirectory) -> list[FoundLog]:
        """Logs of which the checkpoints keep what they said."""
        return [log for log in list(self.not_open.values()) if log.directory is directory]

    def futures_in(self, directory: DataDirectory) -> list[FutureLog]:
        """What is being moved to it."""
        return [future for future in list(self.futures.values()) if future.home is directory]

    def count_in(self, directory: DataDirectory) -> int:
        """How many open logs it has, the metadata log counted."""
        return sum(each is directory for each in self.locations.values())

    def lose(self, directory: DataDirectory, reason: str) -> list[FoundLog]:
        """It went offline: nothing in it is served. Returns what needs no recovery any more."""
        for log in self.open_in(directory):
            log.take_offline(reason)
        lost = self.not_open_in(directory)
        for found in lost:
            self.lack_space.discard(found.key)
            self.unreadable[found.key] = reason
        for key, future in list(self.futures.items()):
            if directory in (future.home, self.locations.get(key)):
                future.is_cancelled = True  # what lies there is looked at when it is online again
                del self.futures[key]
        return lost
