"""Finds the member of a request: a known one, a new one, or a replacement of a static member.

A member is identified by its member id. A static member also has an instance id: while it is away
(it left with epoch -2), a new member id may replace it and inherits its assignment. A member that
missed the response with its new epoch may still send the previous epoch, if the partitions it
reports are assigned to it.

Kafka: the getOrMaybeSubscribe…ConsumerGroupMember and throwIf… methods of GroupMetadataManager.
"""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from odradek.coordinator.modern_groups.deadlines import MemberKey
from odradek.coordinator.modern_groups.member import JOINING_EPOCH, LEAVING_STATIC_EPOCH
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatTopicPartitions

from .deadlines import ConsumerDeadlines
from .draft import ConsumerDraft
from .group import ConsumerGroup
from .member import ConsumerMember, OwnedPartitions
from .records import (
    current_assignment_record,
    member_tombstones,
    subscription_record,
    target_record,
)

# The owned partitions in a request; None: not reported.
Reported = Sequence[ConsumerGroupHeartbeatTopicPartitions] | None


def check_group_size(group: ConsumerGroup, member_id: str, max_size: int) -> None:
    """Raise ApiError GROUP_MAX_SIZE_REACHED for a new member of a full group."""
    if len(group.members) >= max_size and member_id not in group.members:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"group {group.group_id} has {len(group.members)} of {max_size} members",
        )


def dynamic_member(group: ConsumerGroup, member_id: str, *, joins: bool) -> ConsumerMember:
    """Return the member with this id, or a new one if it joins.

    Raises ApiError UNKNOWN_MEMBER_ID.
    """
    return group.member_or_new(member_id) if joins else group.member(member_id)


def static_member(
    draft: ConsumerDraft,
    member_id: str,
    instance_id: str,
    deadlines: ConsumerDeadlines,
    *,
    joins: bool,
    by_classic: bool = False,
) -> ConsumerMember:
    """Return the member for an instance id; a joining member may replace the holder.

    `by_classic`: the request is a JoinGroup, which always replaces the holder. Raises ApiError:
    UNRELEASED_INSTANCE_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    holder = draft.group.static_member(instance_id)
    if not joins:
        return checked_holder(holder, member_id, instance_id)
    if holder is None:
        return draft.group.member_or_new(member_id)
    if not by_classic and not holder.uses_classic_protocol:
        _check_released(holder, member_id, instance_id)
    draft.then.append(partial(deadlines.cancel_all, MemberKey(draft.group_id, holder.member_id)))
    return _replaced(draft, holder, member_id)


def checked_holder(
    holder: ConsumerMember | None, member_id: str, instance_id: str
) -> ConsumerMember:
    """Return the holder of an instance id, if its member id is `member_id`.

    Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if holder is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"no member has instance id {instance_id}")
    if holder.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"instance id {instance_id} belongs to {holder.member_id}, not to {member_id}",
        )
    return holder


def check_epoch(member: ConsumerMember, epoch: int, reported: Reported) -> None:
    """Raise ApiError FENCED_MEMBER_EPOCH unless the epoch is the member's.

    The previous epoch is accepted if all reported partitions are assigned to the member: it may
    have missed the response with the new epoch. Epoch 0 is a join, also for a known member.
    """
    if epoch in (JOINING_EPOCH, member.member_epoch):
        return
    is_previous = epoch == member.previous_member_epoch and epoch < member.member_epoch
    if is_previous and _is_among(reported, member.assigned):
        return
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member {member.member_id} is at epoch {member.member_epoch}, not {epoch}: "
        "it must give up all its partitions and join again",
    )


def requesting_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerMember:
    """Return the member that sent a request; it must be in the group.

    Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is None:
        return group.member(member_id)
    return checked_holder(group.static_member(instance_id), member_id, instance_id)


def _check_released(holder: ConsumerMember, member_id: str, instance_id: str) -> None:
    if holder.member_epoch != LEAVING_STATIC_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"instance id {instance_id} is in use by {holder.member_id}: {member_id} must wait",
        )


def _replaced(draft: ConsumerDraft, holder: ConsumerMember, member_id: str) -> ConsumerMember:
    """Replace the holder by a joining member with a new member id, which inherits its target."""
    member = replace(
        holder, member_id=member_id, member_epoch=JOINING_EPOCH, previous_member_epoch=0
    )
    group_id = draft.group_id
    draft.records += member_tombstones(group_id, holder.member_id)
    draft.records += (
        subscription_record(group_id, member),
        target_record(group_id, member_id, draft.group.target(holder.member_id)),
        current_assignment_record(group_id, member),
    )
    return member


def _is_among(reported: Reported, assigned: OwnedPartitions) -> bool:
    """Whether all reported partitions are assigned; False if none were reported."""
    if reported is None:
        return False
    return all(
        topic.topic_id in assigned
        and all(partition in assigned[topic.topic_id] for partition in topic.partitions)
        for topic in reported
    )
