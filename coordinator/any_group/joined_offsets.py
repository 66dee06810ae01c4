"""Joins the offset records of one request, so that to replay them takes little time.

A request may be about ten thousand partitions. Its records are replayed in one turn of the event
loop, because nobody may see a part of a commit. What they become is made before that, in steps. A
joined record has one of the two classes below as its value. It is never stored: a start replays the
records themselves.
"""

from collections.abc import Iterable

from msgspec import Struct

from odradek.coordinator.runtime.journal import not_joined
from odradek.coordinator.runtime.outcome import JoinedRecord, JournalRecord
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.protocol.records.consumer_offsets import OffsetCommitKey, OffsetCommitValue

from .group_offsets import CommittedOffset, Place, TopicOffsets

NOT_WRITTEN = -1


class JoinedCommits(Struct):
    """Commits of one group, in their order; `topics` and `places` have the same."""

    group_id: str
    offsets: list[CommittedOffset]
    topics: TopicOffsets
    places: list[Place]

    def add(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        self.offsets.append(committed)
        self.topics.setdefault(topic, {})[partition] = committed
        self.places.append((topic, partition))


class JoinedTombstones(Struct):
    """Tombstones of one group's offsets."""

    group_id: str
    places: list[Place]


def committed_offset(value: OffsetCommitValue, record_offset: int) -> CommittedOffset:
    """What the value of a record becomes."""
    return CommittedOffset(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        record_offset,
    )


def joined_offsets(records: Iterable[JournalRecord], step: Step) -> list[JoinedRecord]:
    """Join commits of a group that follow each other, and tombstones, if there may be many."""
    if step is no_step:
        return not_joined(records, step)
    joined: list[JoinedRecord] = []
    last: object = None
    for record in stepping(records, step):
        key, value = record.key, record.value
        if type(key) is not OffsetCommitKey:
            last = None
            joined.append(JoinedRecord(record, 1))
            continue
        if value is None:
            if not isinstance(last, JoinedTombstones) or last.group_id != key.group:
                last = JoinedTombstones(key.group, [])
                joined.append(JoinedRecord(JournalRecord(last), 0))
            last.places.append((key.topic, key.partition))
        else:
            if not isinstance(last, JoinedCommits) or last.group_id != key.group:
                last = JoinedCommits(key.group, [], {}, [])
                joined.append(JoinedRecord(JournalRecord(last), 0))
            last.add(key.topic, key.partition, committed_offset(value, NOT_WRITTEN))
        joined[-1].count += 1
    return joined
