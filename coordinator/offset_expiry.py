"""When committed offsets expire.

An offset lives until the group is deleted, its topic is deleted, or it expires: when nobody
consumes the topic in that group any more and `offsets.retention.minutes` have passed, counted

- for a group that has had members: from when it became empty, for all its offsets;
- for topics which a stable group of consumers no longer subscribes to: from the commit;
- for a simple consumer, which never joins: from the commit.

A commit with a retention time of its own (OffsetCommit v2-4) carries its end with it. What an open
transaction may yet commit keeps the offset that it would replace, and the group. A group that is
empty and has no offsets left is deleted too.

Kafka: OffsetMetadataManager.cleanupExpiredOffsets, OffsetExpirationConditionImpl.
"""

from collections.abc import Iterator

from .group import Group
from .offsets import CommittedOffset, Offsets, Place, tombstones_of
from .outcome import JournalRecord

NO_EXPIRY = -1


def expired(group: Group, offsets: Offsets, now_ms: int, retention_ms: int) -> list[JournalRecord]:
    """What forgets the expired offsets of a group, and the group if it had nothing else."""
    gone = [
        place
        for place, committed in _unsubscribed(group, offsets)
        if _has_expired(group, committed, now_ms, retention_ms) and not offsets.is_pending(place)
    ]
    records = tombstones_of(gone)
    left = sum(map(len, offsets.of_group(group.group_id).values())) - len(gone)
    if not left and not offsets.has_pending(group.group_id) and group.is_empty:
        records += group.tombstones()
    return records


def _unsubscribed(group: Group, offsets: Offsets) -> Iterator[tuple[Place, CommittedOffset]]:
    for topic, partitions in offsets.of_group(group.group_id).items():
        if not group.is_subscribed_to(topic):
            for partition, committed in partitions.items():
                yield Place(group.group_id, topic, partition), committed


def _has_expired(group: Group, committed: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
    counts_from_ms = group.retention_counts_from(committed.commit_timestamp_ms)
    if counts_from_ms is None:
        return False
    if committed.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - counts_from_ms >= retention_ms
