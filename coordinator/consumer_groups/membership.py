"""Finds the member of a request: a known one, a new one, or one that replaces a static member.

A member is identified by its member id. A static member also has an instance id. While it is away
(it left with epoch -2), a member with the same instance id and a new member id may replace it, and
inherits its assignment. A member that has missed the response with its new epoch may still send the
previous epoch, if the partitions that it reports are assigned to it.

Kafka: the getOrMaybeSubscribe…ConsumerGroupMember and throwIf… methods of GroupMetadataManager.
"""

from functools import partial

from msgspec.structs import replace

from odradek.coordinator.assignors.assignment import Assignment
from odradek.coordinator.modern_groups.member import JOINING_EPOCH
from odradek.protocol.errors import ApiError, ErrorCode

from .deadlines import ConsumerDeadlines
from .draft import ConsumerDraft
from .member import ConsumerMember, OwnedPartitions
from .records import (
    current_assignment_record,
    member_tombstones,
    subscription_record,
    target_record,
)


def joining_member(
    draft: ConsumerDraft,
    member_id: str,
    instance_id: str | None,
    deadlines: ConsumerDeadlines,
    *,
    by_classic: bool = False,
) -> ConsumerMember:
    """Return the member that joins: a known one, a new one, or one that replaces a static member.

    `by_classic`: the request is a JoinGroup, which replaces a static member even while it is
    present. Raises ApiError UNRELEASED_INSTANCE_ID.
    """
    present = draft.group.static_member(instance_id)
    if present is None:
        return draft.group.member_or_new(member_id)
    if not (by_classic or present.uses_classic_protocol):
        draft.group.check_released(present, member_id)
    draft.then.append(partial(deadlines.cancel_all, draft.group.key_of(present.member_id)))
    return _replaced(draft, present, member_id)


def check_epoch(member: ConsumerMember, epoch: int, owned: Assignment | None) -> None:
    """Raise ApiError FENCED_MEMBER_EPOCH unless the epoch is the member's.

    The previous epoch is accepted if all partitions that the member reports as owned (None: not
    reported) are assigned to it: it may have missed the response with the new epoch. Epoch 0 is a
    join, also for a known member.
    """
    if epoch in (JOINING_EPOCH, member.member_epoch):
        return
    is_previous = epoch == member.previous_member_epoch and epoch < member.member_epoch
    if is_previous and _is_among(owned, member.assigned):
        return
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member {member.member_id} is at epoch {member.member_epoch}, not {epoch}: "
        "it must give up all its partitions and join again",
    )


def _replaced(draft: ConsumerDraft, old: ConsumerMember, member_id: str) -> ConsumerMember:
    """Replace a static member by a joining one with a new member id, which inherits its target."""
    member = replace(old, member_id=member_id, member_epoch=JOINING_EPOCH, previous_member_epoch=0)
    group_id = draft.group_id
    draft.records += member_tombstones(group_id, old.member_id)
    draft.records += (
        subscription_record(group_id, member, draft.step),
        target_record(group_id, member_id, draft.group.target(old.member_id), draft.step),
        current_assignment_record(group_id, member, draft.step),
    )
    return member


def _is_among(owned: Assignment | None, assigned: OwnedPartitions) -> bool:
    """Whether all reported partitions are assigned; False if none were reported."""
    return owned is not None and all(
        topic_id in assigned and partitions <= assigned[topic_id].keys()
        for topic_id, partitions in owned.items()
    )
