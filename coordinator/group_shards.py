"""The partitions of `__consumer_offsets`, each with its journal and its groups.

There is one shard per partition, as in Kafka: when a log cannot be read or its directory is
offline, only the groups of that log are not served. Until the topic exists there are no shards and
no group is served. The first FindCoordinator request creates the topic.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.consumer_offsets import RECORD_TYPES
from odradek.storage.log import PartitionLog
from odradek.storage.topic_names import CONSUMER_OFFSETS_TOPIC as OFFSETS_TOPIC

from .group_settings import GroupSettings
from .group_state import GroupState
from .java_hash import java_hash
from .journal import CorruptJournalError, Journal
from .other_group import OTHER_GROUP_KEYS
from .record_codec import CoordinatorRecordCodec
from .sliced_replay import replay_in_slices

logger = logging.getLogger("odradek.groups")

# By error of an append: the error that the client gets. Kafka: CoordinatorOperationExceptionHelper.
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
# The cache of partitions by group id: the number of ids, and the longest id that is cached.
CACHED_PARTITIONS = 16384
MAX_CACHED_NAME_LENGTH = 255


@dataclass(frozen=True, slots=True)
class GroupShard:
    """One partition that is served: its groups, and the journal that writes their records."""

    state: GroupState
    journal: Journal


class GroupShards:
    """All shards by partition. In place of one that is not served is the error for its clients."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        # Records that are not replayed are not decoded: they may have any content.
        self._codec = CoordinatorRecordCodec(
            {n: types for n, types in RECORD_TYPES.items() if types[0] in GroupState.REPLAY_OF},
            OTHER_GROUP_KEYS,
        )
        self._shards: list[GroupShard | ErrorCode] = []
        self._loads: dict[int, object] = {}  # what is being loaded, by partition
        self._partition_of = _cached_partition_of(1)

    @property
    def is_open(self) -> bool:
        """Whether `__consumer_offsets` exists."""
        return bool(self._shards)

    def prepare(self, partition_count: int) -> None:
        """The topic exists; none of its partitions has been loaded yet."""
        self.close()
        self._shards = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * partition_count
        self._partition_of = _cached_partition_of(partition_count)

    def load(self, log: PartitionLog) -> GroupShard | None:
        """Replay a partition; None when it cannot be read: its groups are then out of service."""
        shard = None
        for shard in self.load_in_slices(log):  # noqa: B007 # the last one counts
            pass
        return shard

    def load_in_slices(self, log: PartitionLog) -> Iterator[GroupShard | None]:
        """Replay a partition: yield None after each slice, then the shard, which is served now.

        The iterator ends without a shard if the log cannot be read or becomes unavailable.
        """
        load = self._loads[log.partition] = object()
        self._shards[log.partition] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return self._load(log, load)

    def _load(self, log: PartitionLog, load: object) -> Iterator[GroupShard | None]:
        if self._loads.get(log.partition) is not load:
            return
        state = GroupState(self._settings)
        try:
            for _ in replay_in_slices(log, state, self._codec):
                yield None
                if self._loads.get(log.partition) is not load:
                    return
        except (CorruptJournalError, OSError) as error:
            logger.error(
                "the groups in %s-%d are out of service: %s", OFFSETS_TOPIC, log.partition, error
            )
            self.unavailable(log.partition)
            return
        journal = Journal(
            log,
            state,
            self._codec,
            compression=self._settings.offsets_topic_compression,
            start_offset=log.log_end_offset,
            append_errors=APPEND_ERRORS,
        )
        del self._loads[log.partition]
        shard = self._shards[log.partition] = GroupShard(state, journal)
        yield shard

    def unavailable(self, partition: int) -> GroupShard | None:
        """Stop serving a partition whose log is offline. Returns the shard that served it."""
        if partition >= len(self._shards):
            return None
        shard = self._shards[partition]
        self._shards[partition] = ErrorCode.NOT_COORDINATOR
        self._loads.pop(partition, None)
        return None if isinstance(shard, ErrorCode) else shard

    def close(self) -> None:
        """Remove all shards and stop all loads."""
        self._shards.clear()
        self._loads.clear()

    def is_served(self, group_id: str) -> bool:
        """Whether the group's partition is served or loading."""
        partition = self._partition_of(group_id) if self._shards else -1
        return partition >= 0 and self._shards[partition] is not ErrorCode.NOT_COORDINATOR

    def of(self, group_id: str) -> GroupShard:
        """Return the shard of a group.

        Raises ApiError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        if not self._shards:
            raise ApiError(ErrorCode.NOT_COORDINATOR, f"{OFFSETS_TOPIC} does not exist yet")
        partition = self._partition_of(group_id)
        shard = self._shards[partition]
        if isinstance(shard, ErrorCode):
            raise ApiError(shard, f"{OFFSETS_TOPIC}-{partition} is not served now")
        return shard

    def all(self) -> Sequence[GroupShard]:
        """Return the shards that are served. Raises ApiError while one is loading."""
        if ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in self._shards:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{OFFSETS_TOPIC} is loading")
        return list(self.serving())

    def serving(self) -> Iterator[GroupShard]:
        """Iterate over the shards that are served."""
        return (shard for shard in self._shards if isinstance(shard, GroupShard))


def partition_of(group_id: str, partition_count: int) -> int:
    """Return a group's partition: abs(hash) % count, as in Kafka. Never change it.

    The absolute value of the smallest int32 is taken as 0 (Kafka: Utils.abs).
    """
    value = java_hash(group_id)
    return 0 if value == -(1 << 31) else abs(value) % partition_count


def _cached_partition_of(partition_count: int) -> Callable[[str], int]:
    """Make a cached `partition_of`, which hashes the whole id. Long ids are not cached."""
    cached = lru_cache(CACHED_PARTITIONS)(partial(partition_of, partition_count=partition_count))

    def cached_partition_of(group_id: str) -> int:
        if len(group_id) <= MAX_CACHED_NAME_LENGTH:
            return cached(group_id)
        return partition_of(group_id, partition_count)

    return cached_partition_of
