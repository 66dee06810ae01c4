"""The offsets that groups have committed, and those that open transactions may still commit.

A plain commit takes effect as soon as it is in the log. One that a transaction writes is pending
until the transaction's marker: a commit marker makes the pending offsets committed, an abort marker
drops them. Of two commits of a partition the newer is the one with the higher record offset, not
the one that took effect later: a transaction that ends late does not undo a later plain commit. A
tombstone removes both kinds. While a partition has pending offsets, a request for stable offsets
gets an error and is retried by the client.

Kafka: OffsetMetadataManager.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from itertools import chain
from typing import NamedTuple

from odradek.coordinator.runtime.outcome import JournalRecord, ReplayContext
from odradek.coordinator.runtime.steps import Step, free, no_step, stepping
from odradek.protocol.batch_header import NO_PRODUCER_ID
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.records.consumer_offsets import OffsetCommitKey, OffsetCommitValue

from .group_offsets import CommittedOffset, GroupOffsets, Place, TopicOffsets
from .joined_offsets import JoinedCommits, JoinedTombstones, committed_offset

# A part takes a millisecond or two.
STEPS_OF_A_PART = 1_000


class GroupTopicPartition(NamedTuple):
    """The partition for which a group commits an offset."""

    group_id: str
    topic: str
    partition: int


class Offsets:
    """Committed and pending offsets of all groups."""

    def __init__(self) -> None:
        self._by_group: dict[str, GroupOffsets] = {}
        # The groups for which a producer's open transaction has offsets.
        self._groups_of: dict[int, dict[str, None]] = {}

    def __len__(self) -> int:
        return sum(self.count(group_id) for group_id in self._by_group)

    def version(self, group_id: str) -> tuple[GroupOffsets | None, int]:
        """Equal versions: the partitions for which the group has offsets are the same."""
        found = self._by_group.get(group_id)
        return found, 0 if found is None else found.changes

    def of_group(self, group_id: str) -> TopicOffsets:
        """Return the group's committed offsets by topic and partition; empty if it has none."""
        found = self._by_group.get(group_id)
        return {} if found is None else found.committed

    def find(self, group_id: str) -> GroupOffsets | None:
        """Return what the group has committed and pending; None if that is nothing."""
        return self._by_group.get(group_id)

    def is_pending(self, key: GroupTopicPartition) -> bool:
        """Whether an open transaction has an offset for this partition."""
        found = self._by_group.get(key.group_id)
        return found is not None and (key.topic, key.partition) in found.pending

    def pending(self, group_id: str) -> Set[Place]:
        """Return the partitions for which an open transaction has an offset now."""
        found = self._by_group.get(group_id)
        # Copying a dict takes a tenth of the time of a set, which hashes each place again.
        return {}.keys() if found is None else dict(found.pending).keys()

    def has_pending(self, group_id: str) -> bool:
        """Whether an open transaction has any offset for this group."""
        found = self._by_group.get(group_id)
        return found is not None and bool(found.pending)

    def is_known(self, key: GroupTopicPartition) -> bool:
        """Whether there is a committed or pending offset for this partition."""
        committed = self.of_group(key.group_id).get(key.topic, {})
        return key.partition in committed or self.is_pending(key)

    # -- replay ----------------------------------------------------------------------------------

    def replay(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, context: ReplayContext
    ) -> None:
        """Apply a commit, or a tombstone if `value` is None."""
        if value is None:
            self.replay_tombstones(JoinedTombstones(key.group, [(key.topic, key.partition)]))
            return
        committed = committed_offset(value, context.offset)
        group = self._writable(key.group, context.producer_id)
        if context.producer_id == NO_PRODUCER_ID:
            group.put(key.topic, key.partition, committed)
        else:
            group.put_pending(context.producer_id, key.topic, key.partition, committed)

    def replay_commits(self, commits: JoinedCommits, context: ReplayContext) -> None:
        """Apply joined commits (joined_offsets.py). `context.offset` is that of the last."""
        first = context.offset - len(commits.offsets) + 1
        for record_offset, committed in enumerate(commits.offsets, first):
            committed.record_offset = record_offset
        group = self._writable(commits.group_id, context.producer_id)
        if context.producer_id == NO_PRODUCER_ID:
            group.put_all(commits.topics, context.offset)
        else:
            writers = dict.fromkeys(commits.places, context.producer_id)
            records = first, context.offset
            group.put_all_pending(context.producer_id, commits.topics, writers, records)

    def _writable(self, group_id: str, producer_id: int) -> GroupOffsets:
        group = self._by_group.get(group_id)
        if group is None:
            group = self._by_group[group_id] = GroupOffsets()
        if producer_id != NO_PRODUCER_ID:
            self._groups_of.setdefault(producer_id, {})[group_id] = None
        return group

    def replay_tombstones(self, tombstones: JoinedTombstones) -> None:
        """Apply joined tombstones (joined_offsets.py)."""
        group = self._by_group.get(tombstones.group_id)
        if group is not None:
            group.remove_all(tombstones.places)
            self._drop_if_empty(tombstones.group_id, group)

    def _drop_if_empty(self, group_id: str, group: GroupOffsets) -> None:
        if group.is_empty:
            del self._by_group[group_id]

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply the marker that ends a producer's transaction."""
        for group_id in self._groups_of.pop(producer_id, ()):
            group = self._by_group.get(group_id)
            if group is not None:
                group.end_transaction(producer_id, committed=committed)
                self._drop_if_empty(group_id, group)

    # -- tombstones ------------------------------------------------------------------------------

    def tombstones(self, group_id: str, step: Step = no_step) -> list[JournalRecord]:
        """Return tombstones of all offsets of a group.

        Other requests are served in a `step` (steps.py). The group must not change meanwhile.
        """
        known = (
            (topic, partition)
            for topic in list(self.of_group(group_id))
            for partition in list(self.of_group(group_id).get(topic, ()))
        )
        places = chain(known, self.pending(group_id))
        return tombstones_of((GroupTopicPartition(group_id, *place) for place in places), step)

    def in_topics(
        self, deleted: Sequence[tuple[str, bytes]], before_offset: int
    ) -> Iterator[GroupTopicPartition | None]:
        """Yield where offsets in deleted topics (name, id) are stored, and None (see `_where`).

        Before OffsetCommit v10 a commit has no topic id. Such an offset is in the deleted topic if
        its record is before `before_offset`, the end of the log at the deletion. Later ones are in
        a new topic of that name.
        """
        ids: dict[str, set[bytes]] = {}
        for name, topic_id in deleted:
            ids.setdefault(name, {ZERO_UUID}).add(topic_id)

        def is_deleted(topic: str, found: CommittedOffset) -> bool:
            return found.topic_id in ids.get(topic, ()) and found.record_offset < before_offset

        for group_id in self.group_ids:
            yield None
            topics = self.of_group(group_id).keys() & ids.keys()
            yield from self._where(group_id, topics, is_deleted)

    def _where(
        self,
        group_id: str,
        topics: Iterable[str],
        is_wanted: Callable[[str, CommittedOffset], bool],
    ) -> Iterator[GroupTopicPartition | None]:
        """Yield what `is_wanted` accepts of the offsets committed in `topics` and of all pending.

        They may change between two items. None is a look that found nothing: `in_parts` counts the
        looks.
        """
        for topic in topics:
            for key, committed in self._in_topic(group_id, topic):
                yield key if committed is not None and is_wanted(topic, committed) else None
        for place, pending in self._pending(group_id):
            wanted_here = any(is_wanted(place[0], offset) for offset in pending)
            yield GroupTopicPartition(group_id, *place) if wanted_here else None

    def _pending(self, group_id: str) -> Iterator[tuple[Place, list[CommittedOffset]]]:
        """Yield what is pending now for each partition. It may change between two items."""
        found = self._by_group.get(group_id)
        if found is not None:
            for place in list(found.pending):
                yield place, found.pending_of(place)

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
        return list(self._by_group)

    def in_missing_topics(
        self, topic_ids: Container[bytes]
    ) -> Iterator[GroupTopicPartition | None]:
        """Yield where offsets in topics other than `topic_ids` are stored, and None (see `_where`).

        Offsets without a topic id stay. A topic's deletion is written to another log: there may
        have been a crash between the two writes.
        """

        def is_missing(_topic: str, found: CommittedOffset) -> bool:
            return found.topic_id not in topic_ids and found.topic_id != ZERO_UUID

        for group_id in self.group_ids:
            yield from self._where(group_id, list(self.of_group(group_id)), is_missing)


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
    """Whether this is enough for one part. A tombstone takes ten times as long as a look."""
    return looked_at + 10 * tombstones >= STEPS_OF_A_PART


def tombstones_of(keys: Iterable[GroupTopicPartition], step: Step = no_step) -> list[JournalRecord]:
    """Return the records that delete these offsets, one for each distinct key."""
    distinct: set[GroupTopicPartition] = set()
    tombstones = []
    for key in stepping(iter(keys), step):
        if key not in distinct:
            distinct.add(key)
            group_id, topic, partition = key
            found = OffsetCommitKey(group=group_id, topic=topic, partition=partition)
            tombstones.append(JournalRecord(None, 0, found))
    free(step, distinct)  # in steps: to free thousands of keys takes long
    return tombstones
