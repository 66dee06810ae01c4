"""Who speaks in a heartbeat: a member, a new one, or one that takes a static member's place.

A member is known by its id, a static one by its instance id too: while it is away (it left with
epoch -2) another member id may take its place, and gets all that it had. A member that was told a
new epoch, but not yet heard it, may still come with the one before; only its partitions must be
among those it has.

Kafka: the getOrMaybeSubscribe…ConsumerGroupMember and throwIf… methods of GroupMetadataManager.
"""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatTopicPartitions

from .deadlines import MemberDeadlines, MemberKey
from .draft import Draft
from .group import ConsumerGroup
from .member import JOINING_EPOCH, LEAVING_STATIC_EPOCH, ConsumerMember, OwnedPartitions
from .records import (
    current_assignment_record,
    member_tombstones,
    subscription_record,
    target_record,
)

# What a member says that it owns; None: it does not say.
Reported = Sequence[ConsumerGroupHeartbeatTopicPartitions] | None


def check_group_size(group: ConsumerGroup, member_id: str, max_size: int) -> None:
    """Raises ApiError GROUP_MAX_SIZE_REACHED for one more than there may be."""
    if len(group.members) >= max_size and member_id not in group.members:
        raise ApiError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"group {group.group_id} has {len(group.members)} of {max_size} members",
        )


def dynamic_member(group: ConsumerGroup, member_id: str, *, joins: bool) -> ConsumerMember:
    """The member with this id, or a new one if it joins. Raises ApiError UNKNOWN_MEMBER_ID."""
    return group.member_or_new(member_id) if joins else group.member(member_id)


def static_member(
    draft: Draft,
    member_id: str,
    instance_id: str,
    deadlines: MemberDeadlines,
    *,
    joins: bool,
    by_classic: bool = False,
) -> ConsumerMember:
    """The member that speaks for an instance id; a joining one may take another's place.

    `by_classic`: it comes by JoinGroup, where the newcomer always wins. Raises ApiError:
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
    """The holder of an instance id, if it is who speaks.

    Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if holder is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"nobody has instance id {instance_id}")
    if holder.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"instance id {instance_id} is now with {holder.member_id}, not {member_id}",
        )
    return holder


def check_epoch(member: ConsumerMember, epoch: int, reported: Reported) -> None:
    """Raises ApiError FENCED_MEMBER_EPOCH unless the epoch is the member's.

    The one before will do for a member that cannot have heard of the new one: all that it says it
    owns is assigned to it. Epoch 0 joins, also for a member that is there: it begins anew.
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
    """The member that a request speaks for, which must be in the group.

    Raises ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    if instance_id is None:
        return group.member(member_id)
    return checked_holder(group.static_member(instance_id), member_id, instance_id)


def _check_released(holder: ConsumerMember, member_id: str, instance_id: str) -> None:
    if holder.member_epoch != LEAVING_STATIC_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"instance id {instance_id} is still with {holder.member_id}: {member_id} must wait",
        )


def _replaced(draft: Draft, holder: ConsumerMember, member_id: str) -> ConsumerMember:
    """The holder under its new member id, about to join; with the records that make it so."""
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
    """Whether a member owns nothing but what it is assigned; not if it does not say."""
    if reported is None:
        return False
    return all(
        topic.topic_id in assigned
        and all(partition in assigned[topic.topic_id] for partition in topic.partitions)
        for topic in reported
    )
