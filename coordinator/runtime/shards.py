"""The partitions of a coordinator's internal topic, each with its journal and its state.

There is one shard per partition, as in Kafka: when a log cannot be read or its directory is
offline, only the keys (group ids, for example) that hash to it are not served. Until the topic
exists there are no shards and no key is served.

The partition of a key depends on how many partitions the topic had when it was opened. Partitions
that are added later are loaded, and keys hash to them after the next start, as in Kafka. Then some
states are in a shard to which their key does not hash any more. Requests do not reach them, but
their deadlines still end. So background work holds its shard, and never looks for it by key.

Kafka: CoordinatorRuntime.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Generic, TypeVar

from msgspec import Struct

from odradek.coordinator.java.java_hash import partition_of
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.disk_errors import is_transient
from odradek.storage.log import PartitionLog

from .journal import CheckAppend, Join, Journal, not_joined
from .outcome import StateMachine
from .record_codec import CorruptJournalError, RecordCodec
from .sliced_replay import replay_in_slices

S = TypeVar("S", bound=StateMachine)

# By error of an append: the error that the client gets.
# Kafka: CoordinatorOperationExceptionHelper, TransactionStateManager.appendTransactionToLog.
APPEND_ERRORS: Mapping[ErrorCode, ErrorCode] = MappingProxyType(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
        ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
        ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
# The cache of partitions by key: the number of keys, and the longest key that is cached.
CACHED_PARTITIONS = 16384
MAX_CACHED_KEY_LENGTH = 255


class Shard(Struct, Generic[S], frozen=True, eq=False):
    """One partition that is served: its state, and the journal that writes the state's records."""

    state: S
    journal: Journal

    @property
    def partition(self) -> int:
        return self.journal.log.partition


class CoordinatorShards(Generic[S]):
    """All shards by partition. In place of one that is not served is the error for its clients."""

    def __init__(
        self,
        topic: str,
        new_state: Callable[[int], S],
        codec: RecordCodec,
        *,
        compression: CompressionType,
        logger: logging.Logger,
        join: Join = not_joined,
    ) -> None:
        """`new_state` makes the state of a partition (its index) that is loaded.

        `join` as in Journal.
        """
        self.topic = topic
        self._new_state = new_state
        self._codec = codec
        self._compression = compression
        self._logger = logger
        self._join = join
        self._check_append: CheckAppend | None = None
        self._shards: list[Shard[S] | ErrorCode] = []
        self._loads: dict[int, object] = {}  # what is being loaded, by partition
        self._postponed: list[PartitionLog] = []
        self._partition_of = _cached_partition_of(1)

    @property
    def is_open(self) -> bool:
        """Whether the topic exists."""
        return bool(self._shards)

    @property
    def is_loading(self) -> bool:
        """Whether a partition is loading that will be served."""
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in self._shards

    def check_appends(self, check: CheckAppend) -> None:
        """Let every append to a log be checked: `check` raises ApiError if it is not allowed now.

        NOT_ENOUGH_REPLICAS is COORDINATOR_NOT_AVAILABLE for clients.
        """
        self._check_append = check
        for shard in self.serving():
            shard.journal.check_append = check

    def prepare(self, partition_count: int) -> None:
        """The topic exists; none of its partitions has been loaded yet."""
        self.close()
        self._shards = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * partition_count
        self._partition_of = _cached_partition_of(partition_count)

    def open_topic(self, logs: Iterable[PartitionLog], partition_count: int) -> list[Shard[S]]:
        """Load the topic's partitions at once, and return the shards that are served now.

        A partition without a log, or with one that cannot be read, is not served.
        """
        self.prepare(partition_count)
        missing = set(range(partition_count))
        opened: list[Shard[S]] = []
        for log in logs:
            missing.discard(log.partition)
            opened += [shard for shard in self.load_in_slices(log) if shard is not None]
        for partition in missing:
            self.unavailable(partition)
        return opened

    def load_in_slices(self, log: PartitionLog) -> Iterator[Shard[S] | None]:
        """Replay a partition: yield None after each slice, then the shard, which is served now.

        The iterator ends without a shard if the log cannot be read or becomes unavailable, or if
        the topic is not open.
        """
        if not self.is_open:
            return iter(())
        added = log.partition + 1 - len(self._shards)
        self._shards += [ErrorCode.NOT_COORDINATOR] * added
        load = self._loads[log.partition] = object()
        self._shards[log.partition] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return self._load(log, load)

    def _load(self, log: PartitionLog, load: object) -> Iterator[Shard[S] | None]:
        if self._loads.get(log.partition) is not load:
            return
        state = self._new_state(log.partition)
        try:
            for _ in replay_in_slices(log, state, self._codec):
                yield None
                if self._loads.get(log.partition) is not load:
                    return
            journal = Journal(
                log,
                state,
                self._codec,
                compression=self._compression,
                start_offset=log.log_end_offset,
                append_errors=APPEND_ERRORS,
                join=self._join,
            )
            journal.check_append = self._check_append
        except (CorruptJournalError, OSError) as error:
            self._logger.error("%s-%d is out of service: %s", self.topic, log.partition, error)
            self.unavailable(log.partition)
            if isinstance(error, OSError) and is_transient(error):
                self.postpone(log)
            return
        del self._loads[log.partition]
        shard = self._shards[log.partition] = Shard(state, journal)
        yield shard

    def unavailable(self, partition: int) -> Shard[S] | None:
        """Stop serving a partition whose log is offline. Returns the shard that served it."""
        if partition >= len(self._shards):
            return None
        shard = self._shards[partition]
        self._shards[partition] = ErrorCode.NOT_COORDINATOR
        self._loads.pop(partition, None)
        return None if isinstance(shard, ErrorCode) else shard

    def postpone(self, log: PartitionLog) -> None:
        """Have a log loaded later, after a transient error of the disk."""
        if log not in self._postponed:
            self._postponed.append(log)

    def take_postponed(self) -> list[PartitionLog]:
        """Return the logs that are to be loaded again."""
        postponed, self._postponed = self._postponed, []
        return postponed

    def close(self) -> None:
        """Remove all shards and stop all loads."""
        self._shards.clear()
        self._loads.clear()
        self._postponed.clear()

    def is_served(self, key: str) -> bool:
        """Whether the key's partition is served or loading."""
        partition = self._partition_of(key) if self._shards else -1
        return partition >= 0 and self._shards[partition] is not ErrorCode.NOT_COORDINATOR

    def of(self, key: str) -> Shard[S]:
        """Return the shard of a key.

        Raises ApiError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        return self._served(self.partition_of(key))

    def at(self, partition: int) -> Shard[S]:
        """Return the shard of a partition. Raises ApiError as `of`."""
        if not 0 <= partition < len(self._shards):
            raise self._not_served(partition, ErrorCode.NOT_COORDINATOR)
        return self._served(partition)

    def _served(self, partition: int) -> Shard[S]:
        shard = self._shards[partition]
        if isinstance(shard, ErrorCode):
            raise self._not_served(partition, shard)
        return shard

    def _not_served(self, partition: int, error: ErrorCode) -> ApiError:
        return ApiError(error, f"{self.topic}-{partition} is not served now")

    def partition_of(self, key: str) -> int:
        """Return the partition of a key. Raises ApiError: NOT_COORDINATOR."""
        if not self._shards:
            raise ApiError(ErrorCode.NOT_COORDINATOR, f"{self.topic} does not exist yet")
        return self._partition_of(key)

    def all(self) -> Sequence[Shard[S]]:
        """Return the shards that are served. Raises ApiError while one is loading."""
        if self.is_loading:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic} is loading")
        return list(self.serving())

    def serving(self) -> Iterator[Shard[S]]:
        """Iterate over the shards that are served."""
        return (shard for shard in self._shards if isinstance(shard, Shard))

    def unserved(self) -> list[int]:
        """Return the partitions that are neither served nor loading."""
        not_served = ErrorCode.NOT_COORDINATOR
        return [index for index, each in enumerate(self._shards) if each is not_served]


def _cached_partition_of(partition_count: int) -> Callable[[str], int]:
    """Make a cached `partition_of`, which hashes the whole key. Long keys are not cached."""
    cached = lru_cache(CACHED_PARTITIONS)(partial(partition_of, partition_count=partition_count))

    def cached_partition_of(key: str) -> int:
        if len(key) <= MAX_CACHED_KEY_LENGTH:
            return cached(key)
        return partition_of(key, partition_count)

    return cached_partition_of
