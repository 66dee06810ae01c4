"""The offsets that groups have committed, and those that open transactions may still commit.

A plain commit takes effect as soon as it is in the log. One that a transaction writes is pending
until the transaction's marker: a commit marker makes the pending offsets committed, an abort marker
drops them. Of two commits of a partition the newer is the one with the higher record offset, not
the one that took effect later: a transaction that ends late does not undo a later plain commit. A
tombstone removes both kinds. While a partition has pending offsets, a request for stable offsets
gets an error and is retried by the client.

Kafka: OffsetMetadataManager.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

from msgspec import Struct

from odradek.coordinator.runtime.outcome import JournalRecord, ReplayContext
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.records.consumer_offsets import OffsetCommitKey, OffsetCommitValue

NO_PRODUCER = -1


class CommittedOffset(Struct, frozen=True, gc=False):
    """A committed or pending offset. `record_offset` is the offset of its record in the log.

    A struct, because ten thousand of them are made in one turn of the event loop, and a NamedTuple
    takes three times as long.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    topic_id: bytes
    record_offset: int

    def is_of(self, topic_id: bytes) -> bool:
        """Whether it belongs to that topic, not to an older one of its name. Zero matches all."""
        return ZERO_UUID in (self.topic_id, topic_id) or self.topic_id == topic_id


# A part takes a millisecond or two.
STEPS_OF_A_PART = 1_000

PartitionOffsets = dict[int, CommittedOffset]


class GroupTopicPartition(NamedTuple):
    """The partition for which a group commits an offset."""

    group_id: str
    topic: str
    partition: int


class Offsets:
    """Committed and pending offsets of all groups."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, PartitionOffsets]] = {}
        # Tables have plain tuples as keys: thousands of NamedTuples take too long.
        self._pending: dict[int, dict[tuple[str, str, int], CommittedOffset]] = {}
        # By group and partition: the producers whose open transactions have an offset for it.
        self._open: dict[str, dict[tuple[str, int], set[int]]] = {}

    def __len__(self) -> int:
        return sum(
            len(partitions) for topics in self._by_group.values() for partitions in topics.values()
        )

    def of_group(self, group_id: str) -> dict[str, PartitionOffsets]:
        """Return the group's committed offsets by topic and partition; empty if it has none."""
        return self._by_group.get(group_id, {})

    def is_pending(self, key: GroupTopicPartition) -> bool:
        """Whether an open transaction has an offset for this partition."""
        return (key.topic, key.partition) in self._open.get(key.group_id, {})

    def has_pending(self, group_id: str) -> bool:
        """Whether an open transaction has any offset for this group."""
        return group_id in self._open

    def is_known(self, key: GroupTopicPartition) -> bool:
        """Whether there is a committed or pending offset for this partition."""
        committed = self.of_group(key.group_id).get(key.topic, {})
        return key.partition in committed or self.is_pending(key)

    # -- replay ----------------------------------------------------------------------------------

    def replay(
        self, stored_key: OffsetCommitKey, value: OffsetCommitValue | None, context: ReplayContext
    ) -> None:
        """Apply a commit, or a tombstone if `value` is None."""
        group_id, topic, partition = stored_key.group, stored_key.topic, stored_key.partition
        if value is None:
            self._remove(group_id, topic, partition)
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
            self._put(group_id, topic, partition, committed)
        else:
            self._put_pending(group_id, topic, partition, committed, context.producer_id)

    def _put(self, group_id: str, topic: str, partition: int, committed: CommittedOffset) -> None:
        topics = self._by_group.setdefault(group_id, {})
        topics.setdefault(topic, {})[partition] = committed

    def _put_pending(
        self,
        group_id: str,
        topic: str,
        partition: int,
        committed: CommittedOffset,
        producer_id: int,
    ) -> None:
        self._pending.setdefault(producer_id, {})[group_id, topic, partition] = committed
        partitions = self._open.setdefault(group_id, {})
        producers = partitions.get((topic, partition))
        if producers is None:
            partitions[topic, partition] = {producer_id}
        else:
            producers.add(producer_id)

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        topics = self._by_group.get(group_id)
        partitions = None if topics is None else topics.get(topic)
        if topics is not None and partitions is not None:
            partitions.pop(partition, None)
            if not partitions:
                del topics[topic]
            if not topics:
                del self._by_group[group_id]
        open_here = self._open.get(group_id)
        if open_here is None:
            return
        for producer_id in tuple(open_here.get((topic, partition), ())):
            self._pending[producer_id].pop((group_id, topic, partition))
            self._close(group_id, topic, partition, producer_id)

    def _close(self, group_id: str, topic: str, partition: int, producer_id: int) -> None:
        partitions = self._open[group_id]
        producers = partitions[topic, partition]
        producers.discard(producer_id)
        if not producers:
            del partitions[topic, partition]
        if not partitions:
            del self._open[group_id]

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply the marker that ends a producer's transaction."""
        for (group_id, topic, partition), pending in self._pending.pop(producer_id, {}).items():
            self._close(group_id, topic, partition, producer_id)
            known = self.of_group(group_id).get(topic, {}).get(partition)
            if committed and (known is None or pending.record_offset > known.record_offset):
                self._put(group_id, topic, partition, pending)

    # -- tombstones ------------------------------------------------------------------------------

    def known(self, group_id: str) -> dict[tuple[str, int], None]:
        """Return the partitions for which the group has a committed or pending offset."""
        known: dict[tuple[str, int], None] = {}
        for topic, partitions in self.of_group(group_id).items():
            known |= dict.fromkeys(zip(repeat(topic), partitions, strict=False))
        return known | dict.fromkeys(self._open.get(group_id, ()))

    def tombstones(self, group_id: str, step: Step = no_step) -> list[JournalRecord]:
        """Return tombstones of all offsets of a group."""
        return tombstones_of(
            GroupTopicPartition(group_id, *each) for each in stepping(self.known(group_id), step)
        )

    def in_topics(
        self, deleted: Sequence[tuple[str, bytes]], before_offset: int
    ) -> Iterator[GroupTopicPartition | None]:
        """Yield the offsets in deleted topics (name, id), not in later ones so named.

        Offsets that are stored at `before_offset` or later are left out. The offsets may change
        between two items. None: there was nothing at this step.
        """
        ids: dict[str, set[bytes]] = {}
        for name, topic_id in deleted:
            ids.setdefault(name, {ZERO_UUID}).add(topic_id)

        def is_deleted(topic: str, found: CommittedOffset | None) -> bool:
            return (
                found is not None
                and found.topic_id in ids[topic]
                and found.record_offset < before_offset
            )

        for group_id in list(self._by_group):
            yield None
            for topic in self.of_group(group_id).keys() & ids.keys():
                for key, committed in self._in_topic(group_id, topic):
                    yield key if is_deleted(topic, committed) else None
        for producer_id in list(self._pending):
            for place in list(self._pending.get(producer_id, ())):
                key = GroupTopicPartition(*place)
                pending = self._pending.get(producer_id, {}).get(key)
                yield key if key.topic in ids and is_deleted(key.topic, pending) else None

    def _in_topic(
        self, group_id: str, topic: str
    ) -> Iterator[tuple[GroupTopicPartition, CommittedOffset | None]]:
        """Yield what is committed now for each partition. It may change between two items."""
        for partition in list(self.of_group(group_id).get(topic, ())):
            committed = self.of_group(group_id).get(topic, {}).get(partition)
            yield GroupTopicPartition(group_id, topic, partition), committed

    def committed(self, group_id: str) -> Iterator[tuple[GroupTopicPartition, CommittedOffset]]:
        """Yield the group's committed offsets. They may change between two items."""
        for topic in list(self.of_group(group_id)):
            for key, committed in self._in_topic(group_id, topic):
                if committed is not None:
                    yield key, committed

    def count(self, group_id: str) -> int:
        """Return the number of the group's committed offsets."""
        return sum(map(len, self.of_group(group_id).values()))

    @property
    def group_ids(self) -> list[str]:
        """The groups that have committed or pending offsets."""
        return list(dict.fromkeys((*self._by_group, *self._open)))

    def in_missing_topics(
        self, topic_ids: Container[bytes]
    ) -> Iterator[GroupTopicPartition | None]:
        """Yield the offsets in topics other than `topic_ids`. They may change between two items.

        Offsets without a topic id stay. A topic's deletion is written to another log: there may
        have been a crash between the two writes. None: there was nothing at this step.
        """

        def is_missing(topic_id: bytes) -> bool:
            return topic_id not in topic_ids and topic_id != ZERO_UUID

        for group_id in self.group_ids:
            for key, committed in self.committed(group_id):
                yield key if is_missing(committed.topic_id) else None
            for topic, partition in list(self._open.get(group_id, ())):
                key = GroupTopicPartition(group_id, topic, partition)
                pending = self._pending_of(key)
                yield key if any(is_missing(one.topic_id) for one in pending) else None

    def _pending_of(self, key: GroupTopicPartition) -> list[CommittedOffset]:
        producers = self._open.get(key.group_id, {}).get((key.topic, key.partition))
        return [self._pending[producer_id][key] for producer_id in producers or ()]


def in_parts(found: Iterable[GroupTopicPartition | None]) -> Iterator[list[JournalRecord]]:
    """Yield tombstones in parts that take a millisecond or two to find and to write."""
    part: list[GroupTopicPartition] = []
    steps = 0
    for key in found:
        steps += 1
        if key is not None:
            part.append(key)
        if is_full_part(steps, len(part)):
            yield tombstones_of(part)
            part, steps = [], 0
    yield tombstones_of(part)


def is_full_part(looked_at: int, tombstones: int) -> bool:
    """Whether so much is enough for one part. A tombstone takes ten times as long as a look."""
    return looked_at + 10 * tombstones >= STEPS_OF_A_PART


def tombstones_of(keys: Iterable[GroupTopicPartition]) -> list[JournalRecord]:
    """Return the records that delete these offsets, one for each distinct key."""
    return [
        JournalRecord(None, 0, OffsetCommitKey(group=group_id, topic=topic, partition=partition))
        for group_id, topic, partition in dict.fromkeys(keys)
    ]
