"""The offsets that groups have committed, and those that transactions may still commit.

A plain commit counts as soon as it is in the log. One that a transaction writes is pending until
the transaction's marker comes: its commit makes the pending offsets count, its abort forgets them.
Which of two commits of a partition is the newer is told by where they lie in the log, not by when
they came to count: a transaction that ends late does not undo a later plain commit. A tombstone
takes both kinds away. While a partition has pending offsets, whoever wants stable ones is told to
ask again.

Kafka: OffsetMetadataManager.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.records.consumer_offsets import OffsetCommitKey, OffsetCommitValue

from .outcome import JournalRecord, ReplayContext

NO_PRODUCER = -1


class CommittedOffset(NamedTuple):
    """A committed offset. `record_offset` is where in the log it was committed."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: bytes
    record_offset: int

    def is_of(self, topic_id: bytes) -> bool:
        """Whether it belongs to that topic, not to one that had its name; zero matches all."""
        return ZERO_UUID in (self.topic_id, topic_id) or self.topic_id == topic_id


PartitionOffsets = dict[int, CommittedOffset]
TopicPartition = tuple[str, int]


class Place(NamedTuple):
    """What an offset is committed for."""

    group_id: str
    topic: str
    partition: int


class Offsets:
    """Committed and pending offsets of all groups."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, PartitionOffsets]] = {}
        self._pending: dict[int, dict[Place, CommittedOffset]] = {}
        # By group and partition: the producers whose transactions are open.
        self._open: dict[str, dict[TopicPartition, set[int]]] = {}

    def __len__(self) -> int:
        return sum(
            len(partitions) for topics in self._by_group.values() for partitions in topics.values()
        )

    def of_group(self, group_id: str) -> dict[str, PartitionOffsets]:
        """The group's committed offsets by topic and partition; empty where it has none."""
        return self._by_group.get(group_id, {})

    def is_pending(self, place: Place) -> bool:
        """Whether an open transaction has an offset for this partition."""
        return (place.topic, place.partition) in self._open.get(place.group_id, {})

    def has_pending(self, group_id: str) -> bool:
        """Whether an open transaction has any offset for this group."""
        return group_id in self._open

    def is_known(self, place: Place) -> bool:
        """Whether there is anything that a tombstone would take away."""
        committed = self.of_group(place.group_id).get(place.topic, {})
        return place.partition in committed or self.is_pending(place)

    # -- replay ----------------------------------------------------------------------------------

    def replay(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, context: ReplayContext
    ) -> None:
        """Apply a commit, or (None) a tombstone."""
        place = Place(key.group, key.topic, key.partition)
        if value is None:
            self._forget(place)
            return
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            context.offset,
        )
        if context.producer_id == NO_PRODUCER:
            self._put(place, committed)
        else:
            self._put_pending(place, committed, context.producer_id)

    def _put(self, place: Place, committed: CommittedOffset) -> None:
        topics = self._by_group.setdefault(place.group_id, {})
        topics.setdefault(place.topic, {})[place.partition] = committed

    def _put_pending(self, place: Place, committed: CommittedOffset, producer_id: int) -> None:
        self._pending.setdefault(producer_id, {})[place] = committed
        partitions = self._open.setdefault(place.group_id, {})
        partitions.setdefault((place.topic, place.partition), set()).add(producer_id)

    def _forget(self, place: Place) -> None:
        topics = self._by_group.get(place.group_id, {})
        partitions = topics.get(place.topic, {})
        partitions.pop(place.partition, None)
        if not partitions:
            topics.pop(place.topic, None)
        if not topics:
            self._by_group.pop(place.group_id, None)
        open_here = self._open.get(place.group_id, {})
        for producer_id in tuple(open_here.get((place.topic, place.partition), ())):
            self._pending[producer_id].pop(place)
            self._close(place, producer_id)

    def _close(self, place: Place, producer_id: int) -> None:
        partitions = self._open[place.group_id]
        producers = partitions[place.topic, place.partition]
        producers.discard(producer_id)
        if not producers:
            del partitions[place.topic, place.partition]
        if not partitions:
            del self._open[place.group_id]

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply the marker that ends a producer's transaction."""
        for place, pending in self._pending.pop(producer_id, {}).items():
            self._close(place, producer_id)
            known = self.of_group(place.group_id).get(place.topic, {}).get(place.partition)
            if committed and (known is None or pending.record_offset > known.record_offset):
                self._put(place, pending)

    # -- tombstones ------------------------------------------------------------------------------

    def tombstones(self, group_id: str) -> list[JournalRecord]:
        """What forgets all offsets of a group, each once."""
        committed = (
            Place(group_id, topic, partition)
            for topic, partitions in self.of_group(group_id).items()
            for partition in partitions
        )
        pending = (Place(group_id, *partition) for partition in self._open.get(group_id, {}))
        return tombstones_of((*committed, *pending))

    def tombstones_of_topics(self, deleted: Sequence[tuple[str, bytes]]) -> list[JournalRecord]:
        """What forgets the offsets of deleted topics (name, id), but not of their namesakes."""
        ids: dict[str, set[bytes]] = {}
        for name, topic_id in deleted:
            ids.setdefault(name, {ZERO_UUID}).add(topic_id)
        return tombstones_of(
            place
            for place, committed in self._everything_in(ids)
            if committed.topic_id in ids[place.topic]
        )

    @property
    def group_ids(self) -> list[str]:
        """The groups that have offsets, of open transactions too."""
        return list(dict.fromkeys((*self._by_group, *self._open)))

    def tombstones_of_lost_topics(
        self, group_ids: Iterable[str], topic_ids: Container[bytes]
    ) -> list[JournalRecord]:
        """What forgets the groups' offsets in topics that are not among these; where no id is
        kept, none.

        A topic's deletion is written to another log: a crash may have come between the two.
        """
        return tombstones_of(
            Place(group_id, topic, partition)
            for group_id in group_ids
            for topic, partition, topic_id in self._topic_ids_in(group_id)
            if topic_id not in topic_ids and topic_id != ZERO_UUID
        )

    def _topic_ids_in(self, group_id: str) -> Iterator[tuple[str, int, bytes]]:
        """Topic, partition and topic id of everything that the group has."""
        for topic, partitions in self.of_group(group_id).items():
            for partition, committed in partitions.items():
                yield topic, partition, committed.topic_id
        for (topic, partition), producers in self._open.get(group_id, {}).items():
            for producer_id in producers:
                at = self._pending[producer_id][Place(group_id, topic, partition)]
                yield topic, partition, at.topic_id

    def _everything_in(self, topics: Collection[str]) -> Iterator[tuple[Place, CommittedOffset]]:
        for group_id, known in self._by_group.items():
            for topic in known.keys() & topics:
                for partition, committed in known[topic].items():
                    yield Place(group_id, topic, partition), committed
        for pending in self._pending.values():
            yield from ((place, at) for place, at in pending.items() if place.topic in topics)


def tombstones_of(places: Iterable[Place]) -> list[JournalRecord]:
    """The records that forget these offsets, each once."""
    return [
        JournalRecord(None, 0, OffsetCommitKey(group=group_id, topic=topic, partition=partition))
        for group_id, topic, partition in dict.fromkeys(places)
    ]
