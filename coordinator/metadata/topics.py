"""The topics of the cluster, by name and by id: the largest part of the metadata.

Only replay changes `Topics` (cluster_metadata.py). Partitions are immutable: a change replaces the
object, so a reference to one is a consistent view.

A leader epoch rises with every PartitionChangeRecord that has a leader, even the same one; a
partition epoch rises with every change. Kafka: PartitionRegistration.merge, TopicsImage.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from odradek.protocol.records.cluster_metadata import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from odradek.storage.topic_names import collision_key, is_internal

NO_LEADER = -1
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1


class LeaderRecoveryState(IntEnum):
    """Whether the leader was not in the ISR when it was elected, and must recover."""

    RECOVERED = 0
    RECOVERING = 1


class TopicEvent(IntEnum):
    """A change of a topic that the subscribers of Topics.on_change get."""

    CREATED = 1
    DELETED = 2
    REPLICAS_CHANGED = 3
    """A partition was added, or has other replicas."""


class Partition(Struct, frozen=True, kw_only=True):
    """One partition in the metadata log. Replicas are node ids, the preferred leader first.

    `directories` has the directory.id of each replica, in the order of `replicas`.
    """

    index: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    recovery_state: int = LeaderRecoveryState.RECOVERED

    @classmethod
    def from_record(cls, record: PartitionRecord) -> "Partition":
        """Make the partition of its record."""
        return cls(
            index=record.partition_id,
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            directories=tuple(record.directories),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            recovery_state=record.leader_recovery_state,
        )

    def to_record(self, topic_id: bytes) -> PartitionRecord:
        """Return the record, the inverse of `from_record`; empty ELR fields are null."""
        return PartitionRecord(
            partition_id=self.index,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
            eligible_leader_replicas=list(self.eligible_leader_replicas) or None,
            last_known_elr=list(self.last_known_elr) or None,
        )

    def changed_by(self, change: PartitionChangeRecord) -> "Partition":
        """Return the partition after a change. Fields that the record leaves out stay."""
        elects = change.leader != NO_LEADER_CHANGE
        recovers = change.leader_recovery_state != NO_RECOVERY_CHANGE
        return replace(
            self,
            replicas=_changed(self.replicas, change.replicas),
            isr=_changed(self.isr, change.isr),
            leader=change.leader if elects else self.leader,
            leader_epoch=self.leader_epoch + elects,
            partition_epoch=self.partition_epoch + 1,
            directories=(
                self.directories if change.directories is None else tuple(change.directories)
            ),
            removing_replicas=_changed(self.removing_replicas, change.removing_replicas),
            adding_replicas=_changed(self.adding_replicas, change.adding_replicas),
            eligible_leader_replicas=_changed(
                self.eligible_leader_replicas, change.eligible_leader_replicas
            ),
            last_known_elr=_changed(self.last_known_elr, change.last_known_elr),
            recovery_state=change.leader_recovery_state if recovers else self.recovery_state,
        )

    def directory_of(self, node_id: int) -> bytes | None:
        """Return the directory.id of the node's replica, or None if no directory is recorded."""
        if node_id in self.replicas and len(self.directories) == len(self.replicas):
            return self.directories[self.replicas.index(node_id)]
        return None


def _changed(old: tuple[int, ...], new: list[int] | None) -> tuple[int, ...]:
    return old if new is None else tuple(new)


class Topic:
    """A topic: its name, its id, and its partitions by index (0, 1, 2, … without gaps)."""

    __slots__ = ("_partitions", "_sorted", "id", "name")

    def __init__(self, name: str, topic_id: bytes, partitions: Iterable[Partition] = ()) -> None:
        self.name = name
        self.id = topic_id
        self._partitions = {partition.index: partition for partition in partitions}
        self._sorted = not self._partitions

    @property
    def partitions(self) -> Mapping[int, Partition]:
        """The partitions by index, in order. (A snapshot may have them in any order.)"""
        if not self._sorted:
            self._partitions = dict(sorted(self._partitions.items()))
            self._sorted = True
        return self._partitions

    @property
    def partition_count(self) -> int:
        """How many partitions it has."""
        return len(self._partitions)

    @property
    def is_internal(self) -> bool:
        """Whether it is one of Kafka's own topics."""
        return is_internal(self.name)

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the first partition, as Kafka reports it."""
        return len(self.partitions[0].replicas)

    def replay_put(self, partition: Partition) -> None:
        """Add the partition, or replace the one of the same index."""
        is_next = partition.index == len(self._partitions)
        self._sorted = self._sorted and (is_next or partition.index in self._partitions)
        self._partitions[partition.index] = partition

    def replay_put_all(self, partitions: Mapping[int, Partition]) -> None:
        """Add partitions, or replace those of the same index."""
        first = len(self._partitions)
        is_next = list(partitions) == list(range(first, first + len(partitions)))
        self._sorted = self._sorted and is_next
        self._partitions.update(partitions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topic) and (self.name, self.id, self._partitions) == (
            other.name,
            other.id,
            other._partitions,
        )

    __hash__ = None  # type: ignore[assignment] # it changes

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, {len(self._partitions)} partitions)"


class Topics(Mapping[str, Topic]):
    """All topics, by name; `by_id` has the same by topic id.

    The functions in `on_change` are called during replay, after each record. Related records may
    follow, so a function should note the event and read the topic later.
    """

    def __init__(self) -> None:
        self.on_change: list[Callable[[Topic, TopicEvent], object]] = []
        self.by_id: dict[bytes, Topic] = {}
        self._by_name: dict[str, Topic] = {}
        self._partition_count = 0
        # Only names with dots or underscores, because others collide with none.
        self._by_collision_key: dict[str, dict[str, None]] = {}

    def __getitem__(self, name: str) -> Topic:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def colliding_with(self, name: str) -> str | None:
        """Return a topic whose name differs from `name` only in dots and underscores, or None."""
        key = collision_key(name)
        return None if key is None else next(iter(self._by_collision_key.get(key, ())), None)

    def partition_count(self) -> int:
        """The number of partitions of all topics."""
        return self._partition_count

    # -- replay ---------------------------------------------------------------------------------

    def replay_topic(self, record: TopicRecord) -> None:
        """Add a topic, without partitions yet."""
        self.replay_added_topic(Topic(record.name, record.topic_id))

    def replay_added_topic(self, topic: Topic) -> None:
        """Add a topic with its first partitions."""
        self._by_name[topic.name] = topic
        self.by_id[topic.id] = topic
        self._partition_count += topic.partition_count
        key = collision_key(topic.name)
        if key is not None:
            self._by_collision_key.setdefault(key, {})[topic.name] = None
        self._notify(topic, TopicEvent.CREATED)

    def replay_partition(self, record: PartitionRecord) -> None:
        """Add a partition."""
        topic = self.by_id[record.topic_id]
        self._partition_count -= topic.partition_count
        topic.replay_put(Partition.from_record(record))
        self._partition_count += topic.partition_count
        self._notify(topic, TopicEvent.REPLICAS_CHANGED)

    def replay_added_partitions(self, topic_id: bytes, partitions: Mapping[int, Partition]) -> None:
        """Add partitions to a topic."""
        topic = self.by_id[topic_id]
        self._partition_count -= topic.partition_count
        topic.replay_put_all(partitions)
        self._partition_count += topic.partition_count
        self._notify(topic, TopicEvent.REPLICAS_CHANGED)

    def replay_partition_change(self, record: PartitionChangeRecord) -> None:
        """Change a partition's leader, replicas or directories."""
        topic = self.by_id[record.topic_id]
        topic.replay_put(topic.partitions[record.partition_id].changed_by(record))
        if record.replicas is not None:
            self._notify(topic, TopicEvent.REPLICAS_CHANGED)

    def replay_removal(self, record: RemoveTopicRecord) -> Topic:
        """Remove a topic with its partitions, and return it."""
        topic = self.by_id.pop(record.topic_id)
        del self._by_name[topic.name]
        self._partition_count -= topic.partition_count
        key = collision_key(topic.name)
        if key is not None:
            self._by_collision_key[key].pop(topic.name, None)
            if not self._by_collision_key[key]:
                del self._by_collision_key[key]
        self._notify(topic, TopicEvent.DELETED)
        return topic

    def replay_elr_removal(self, record: ClearElrRecord) -> None:
        """Clear the eligible leader replicas of one topic, or of all if the name is empty."""
        named = self._by_name.values() if not record.topic_name else [self[record.topic_name]]
        for topic in named:
            for partition in list(topic.partitions.values()):
                if partition.eligible_leader_replicas or partition.last_known_elr:
                    change = PartitionChangeRecord(
                        partition_id=partition.index,
                        topic_id=topic.id,
                        eligible_leader_replicas=[],
                        last_known_elr=[],
                    )
                    self.replay_partition_change(change)

    def _notify(self, topic: Topic, event: TopicEvent) -> None:
        for callback in self.on_change:
            callback(topic, event)
