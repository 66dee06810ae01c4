"""The offsets that groups have committed, and when they expire.

An offset lives until the group is deleted, its topic is deleted, or it expires: when nobody
consumes the topic in that group any more and `offsets.retention.minutes` have passed, counted

- for a group that has had members: from when it became empty, for all its offsets;
- for topics which a stable group of consumers no longer subscribes to: from the commit;
- for a simple consumer, which never joins: from the commit.

A commit with a retention time of its own (OffsetCommit v2-4) carries its end with it. A group that
is empty and has no offsets left is deleted too. Kafka: OffsetMetadataManager.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..protocol.messages.offset_commit import OffsetCommitRequestPartition
from ..protocol.primitives import ZERO_UUID
from ..protocol.records.consumer_offsets import OffsetCommitKey, OffsetCommitValue
from .classic_group import ClassicGroup, ClassicState
from .outcome import JournalRecord, ReplayContext

OFFSET_VERSION = 4
OFFSET_VERSION_WITH_EXPIRY = 1
NO_EXPIRY = -1


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


class Offsets:
    """Committed offsets by group, topic and partition."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, PartitionOffsets]] = {}

    def __len__(self) -> int:
        return sum(
            len(partitions) for topics in self._by_group.values() for partitions in topics.values()
        )

    def of_group(self, group_id: str) -> dict[str, PartitionOffsets]:
        """The group's offsets by topic and partition; empty where it has none."""
        return self._by_group.get(group_id, {})

    def replay(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, context: ReplayContext
    ) -> None:
        """Apply a commit, or (None) a tombstone."""
        if value is None:
            self._remove(key)
            return
        topics = self._by_group.setdefault(key.group, {})
        partitions = topics.setdefault(key.topic, {})
        known = partitions.get(key.partition)
        if known is not None and known.record_offset > context.offset:
            return  # a transaction ended after a later plain commit: the later one counts
        partitions[key.partition] = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            context.offset,
        )

    def _remove(self, key: OffsetCommitKey) -> None:
        topics = self._by_group.get(key.group, {})
        partitions = topics.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            topics.pop(key.topic, None)
        if not topics:
            self._by_group.pop(key.group, None)

    # -- tombstones --------------------------------------------------------------------------------

    def tombstones(self, group_id: str) -> list[JournalRecord]:
        """What forgets all offsets of a group."""
        return [
            tombstone(group_id, topic, partition)
            for topic, partitions in self.of_group(group_id).items()
            for partition in partitions
        ]

    def tombstones_of_topics(self, deleted: Sequence[tuple[str, bytes]]) -> list[JournalRecord]:
        """What forgets the offsets of deleted topics (name, id), but not of their namesakes."""
        return [
            tombstone(group_id, name, partition)
            for group_id, topics in self._by_group.items()
            for name, topic_id in deleted
            for partition, committed in topics.get(name, {}).items()
            if committed.topic_id in (ZERO_UUID, topic_id)
        ]

    def expired(self, group: ClassicGroup, now_ms: int, retention_ms: int) -> list[JournalRecord]:
        """What forgets the offsets of a group that have expired."""
        if not _may_expire(group):
            return []
        return [
            tombstone(group.group_id, topic, partition)
            for topic, partition, committed in self._unsubscribed(group)
            if _has_expired(group, committed, now_ms, retention_ms)
        ]

    def _unsubscribed(self, group: ClassicGroup) -> Iterator[tuple[str, int, CommittedOffset]]:
        for topic, partitions in self.of_group(group.group_id).items():
            if not group.is_subscribed_to(topic):
                for partition, committed in partitions.items():
                    yield topic, partition, committed


def _may_expire(group: ClassicGroup) -> bool:
    """Never in the middle of a rebalance, nor while it is not known what is subscribed to."""
    if group.protocol_type is None or group.state is ClassicState.EMPTY:
        return True
    return group.state is ClassicState.STABLE and group.subscribed_topics is not None


def _has_expired(
    group: ClassicGroup, committed: CommittedOffset, now_ms: int, retention_ms: int
) -> bool:
    if committed.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp_ms
    counted_from_ms = committed.commit_timestamp_ms
    had_members = group.protocol_type is not None
    if had_members and group.state is ClassicState.EMPTY and group.state_since_ms is not None:
        counted_from_ms = group.state_since_ms
    return now_ms - counted_from_ms >= retention_ms


def commit_record(
    group_id: str,
    topic: tuple[str, bytes],
    wanted: OffsetCommitRequestPartition,
    now_ms: int,
    expire_timestamp_ms: int,
) -> JournalRecord:
    """The record of one committed offset; `topic` is name and id."""
    name, topic_id = topic
    value = OffsetCommitValue(
        offset=wanted.committed_offset,
        leader_epoch=wanted.committed_leader_epoch,
        metadata=wanted.committed_metadata or "",
        # A client of Kafka 0.8 may say when (v1); from what time the offset expires, follows.
        commit_timestamp=now_ms if wanted.commit_timestamp < 0 else wanted.commit_timestamp,
        expire_timestamp=expire_timestamp_ms,
        topic_id=topic_id,
    )
    version = OFFSET_VERSION if expire_timestamp_ms == NO_EXPIRY else OFFSET_VERSION_WITH_EXPIRY
    key = OffsetCommitKey(group=group_id, topic=name, partition=wanted.partition_index)
    return JournalRecord(value, version, key)


def tombstone(group_id: str, topic: str, partition: int) -> JournalRecord:
    """The record that forgets an offset."""
    return JournalRecord(None, 0, OffsetCommitKey(group=group_id, topic=topic, partition=partition))
