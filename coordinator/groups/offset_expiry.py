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

from collections.abc import Iterable, Iterator

from odradek.coordinator.any_group.group import Group, GroupType
from odradek.coordinator.any_group.group_offsets import CommittedOffset
from odradek.coordinator.any_group.offsets import (
    GroupTopicPartition,
    is_full_part,
    tombstones_of,
)
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.runtime.outcome import JournalRecord

from .group_state import GroupState

NO_EXPIRY = -1


def expired_in_parts(
    state: GroupState, now_ms: int, retention_ms: int
) -> Iterator[list[JournalRecord]]:
    """Yield tombstones of expired offsets, and of empty groups that have none left, in parts.

    A part must be written before the next one is made. The state may change in between.
    """
    part: list[JournalRecord] = []
    looked_at = 0
    for group_id in list(state.groups):
        for _ in _decode_subscriptions(state, group_id):
            yield part
            part, looked_at = [], 0
        of_group = 0  # tombstones in this part
        for key, committed in state.offsets.committed(group_id):
            group = state.groups.get(group_id)
            if group is not None and _is_expired(
                group, state, key, committed, now_ms, retention_ms
            ):
                part += tombstones_of([key])
                of_group += 1
            looked_at += 1
            if is_full_part(looked_at, len(part)):
                yield part
                part, looked_at, of_group = [], 0, 0
        if state.offsets.count(group_id) == of_group:
            part += _tombstones_of_unused(state, group_id)
        looked_at += 1
        if is_full_part(looked_at, len(part)):
            yield part
            part, looked_at = [], 0
    yield part


def expires_ms(
    group: Group, topic: str, committed: CommittedOffset, retention_ms: int
) -> int | None:
    """The wall time at which an offset expires; None: it does not while the group is as it is."""
    if group.group_type is GroupType.SHARE or group.is_subscribed_to(topic):
        return None
    counts_from_ms = group.retention_counts_from(committed.commit_timestamp_ms)
    if counts_from_ms is None:
        return None
    if committed.expire_timestamp_ms != NO_EXPIRY:
        return committed.expire_timestamp_ms
    return counts_from_ms + retention_ms


def _decode_subscriptions(state: GroupState, group_id: str) -> Iterable[None]:
    """Decode what tells whether an offset of the group may expire, in parts."""
    group = state.groups.get(group_id)
    if isinstance(group, ClassicGroup) and state.offsets.count(group_id):
        return group.subscriptions.decode()
    return ()


def _is_expired(
    group: Group,
    state: GroupState,
    key: GroupTopicPartition,
    committed: CommittedOffset,
    now_ms: int,
    retention_ms: int,
) -> bool:
    at_ms = expires_ms(group, key.topic, committed, retention_ms)
    return at_ms is not None and now_ms >= at_ms and not state.offsets.is_pending(key)


def _tombstones_of_unused(state: GroupState, group_id: str) -> list[JournalRecord]:
    """Return the tombstones of a group without committed offsets, if no one uses it."""
    group = state.groups.get(group_id)
    if group is None or group.group_type is GroupType.SHARE or not group.is_empty:
        return []
    return [] if state.offsets.has_pending(group_id) else group.tombstones()
