"""When committed offsets expire.

An offset is kept until its group or topic is deleted, or it expires. It expires when no member of
the group is subscribed to the topic and `offsets.retention.minutes` have passed, counted

- in an empty group that has had members: from when it became empty, for all its offsets;
- in a stable group that is no longer subscribed to the topic: from the commit;
- in a group of a simple consumer, which never joins: from the commit.

A commit with its own retention time (OffsetCommit v2-4) is stored with its expiry time. A pending
offset of an open transaction keeps the offset that it would replace, and the group. A group that is
empty and has no offsets left is deleted too.

Kafka: OffsetMetadataManager.cleanupExpiredOffsets, OffsetExpirationConditionImpl.
"""

from collections.abc import Iterator

from .group import Group, GroupType
from .group_state import GroupState
from .offsets import CommittedOffset, GroupTopicPartition, Offsets, tombstones_of
from .outcome import JournalRecord

NO_EXPIRY = -1


def expired_records(state: GroupState, now_ms: int, retention_ms: int) -> list[JournalRecord]:
    """Return tombstones of expired offsets, and of empty groups that have none left."""
    return [
        record
        for group in state.groups.values()
        if group.group_type is not GroupType.SHARE
        for record in _expired_of_group(group, state.offsets, now_ms, retention_ms)
    ]


def _expired_of_group(
    group: Group, offsets: Offsets, now_ms: int, retention_ms: int
) -> list[JournalRecord]:
    expired = [
        key
        for key, committed in _unsubscribed(group, offsets)
        if _has_expired(group, committed, now_ms, retention_ms) and not offsets.is_pending(key)
    ]
    records = tombstones_of(expired)
    left = sum(map(len, offsets.of_group(group.group_id).values())) - len(expired)
    if not left and not offsets.has_pending(group.group_id) and group.is_empty:
        records += group.tombstones()
    return records


def _unsubscribed(
    group: Group, offsets: Offsets
) -> Iterator[tuple[GroupTopicPartition, CommittedOffset]]:
    for topic, partitions in offsets.of_group(group.group_id).items():
        if not group.is_subscribed_to(topic):
            for partition, committed in partitions.items():
                yield GroupTopicPartition(group.group_id, topic, partition), committed


def _has_expired(group: Group, committed: CommittedOffset, now_ms: int, retention_ms: int) -> bool:
    counts_from_ms = group.retention_counts_from(committed.commit_timestamp_ms)
    if counts_from_ms is None:
        return False
    if committed.expire_timestamp_ms != NO_EXPIRY:
        return now_ms >= committed.expire_timestamp_ms
    return now_ms - counts_from_ms >= retention_ms
