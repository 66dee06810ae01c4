"""The partitions of `__consumer_offsets`, each with its journal and its part of the groups.

A shard per partition, as in Kafka: a log that cannot be read, or whose directory is gone, takes
only its own groups with it. Until the topic exists there are no shards, and nobody coordinates
anything: the first FindCoordinator has it made.
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

# What a failed append means to a member of a group. Kafka: CoordinatorOperationExceptionHelper.
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
# How many groups' partitions are known without hashing the name, and how long a name may be.
PLACES_REMEMBERED = 16384
REMEMBERED_UP_TO = 255


@dataclass(frozen=True, slots=True)
class GroupShard:
    """One partition: what it says, and the way to say more."""

    state: GroupState
    journal: Journal


class GroupShards:
    """All shards. One that cannot serve is represented by the error which says so."""

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        # What no state replays is not decoded either: whatever it holds, it is carried along.
        self._codec = CoordinatorRecordCodec(
            {n: types for n, types in RECORD_TYPES.items() if types[0] in GroupState.REPLAY_OF},
            OTHER_GROUP_KEYS,
        )
        self._shards: list[GroupShard | ErrorCode] = []
        self._loads: dict[int, object] = {}  # what is being loaded, by partition
        self._place_of = _places(1)

    @property
    def is_open(self) -> bool:
        """Whether there is a `__consumer_offsets` at all."""
        return bool(self._shards)

    def prepare(self, partition_count: int) -> None:
        """The topic exists; none of its partitions has been loaded yet."""
        self.close()
        self._shards = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * partition_count
        self._place_of = _places(partition_count)

    def load(self, log: PartitionLog) -> GroupShard | None:
        """Replay a partition; None when it cannot be read: its groups are then out of service."""
        shard = None
        for shard in self.load_in_slices(log):  # noqa: B007 # the last one counts
            pass
        return shard

    def load_in_slices(self, log: PartitionLog) -> Iterator[GroupShard | None]:
        """Replay a partition a bit with each step (None), and then (the shard) serve it.

        One that cannot be read, or becomes unavailable meanwhile, comes to its end without a shard.
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
        """The partition's log is offline. Returns the shard that served it until now."""
        if partition >= len(self._shards):
            return None
        shard = self._shards[partition]
        self._shards[partition] = ErrorCode.NOT_COORDINATOR
        self._loads.pop(partition, None)
        return None if isinstance(shard, ErrorCode) else shard

    def close(self) -> None:
        """Forget all shards, also those that somebody is going through, or loads."""
        self._shards.clear()
        self._loads.clear()

    def is_served(self, group_id: str) -> bool:
        """Whether the group has a coordinator, be it one that is still loading."""
        partition = self._place_of(group_id) if self._shards else -1
        return partition >= 0 and self._shards[partition] is not ErrorCode.NOT_COORDINATOR

    def of(self, group_id: str) -> GroupShard:
        """The shard of a group.

        Raises ApiError: COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR.
        """
        if not self._shards:
            raise ApiError(ErrorCode.NOT_COORDINATOR, f"{OFFSETS_TOPIC} does not exist yet")
        partition = self._place_of(group_id)
        shard = self._shards[partition]
        if isinstance(shard, ErrorCode):
            raise ApiError(shard, f"{OFFSETS_TOPIC}-{partition} is not served now")
        return shard

    def all(self) -> Sequence[GroupShard]:
        """Every shard that serves. Raises ApiError while one is still loading."""
        if ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in self._shards:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{OFFSETS_TOPIC} is loading")
        return list(self.serving())

    def serving(self) -> Iterator[GroupShard]:
        """Every shard that serves by now."""
        return (shard for shard in self._shards if isinstance(shard, GroupShard))


def partition_of(group_id: str, partition_count: int) -> int:
    """Kafka's choice: abs(hash) % count, where abs of the smallest int is 0. Never change it."""
    value = java_hash(group_id)
    return 0 if value == -(1 << 31) else abs(value) % partition_count


def _places(partition_count: int) -> Callable[[str], int]:
    """`partition_of`, which walks through the whole name; usual names it does not forget."""
    remembered = lru_cache(PLACES_REMEMBERED)(
        partial(partition_of, partition_count=partition_count)
    )

    def place_of(group_id: str) -> int:
        if len(group_id) <= REMEMBERED_UP_TO:
            return remembered(group_id)
        return partition_of(group_id, partition_count)

    return place_of
