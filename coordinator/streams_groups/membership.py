"""Finds the member that sends a heartbeat: known, new, or in the place of a static member.

A static member has an instance id. It may leave for a while (epoch -2), and come back under another
member id before its session ends: then it has its tasks and its target at once.

Kafka: GroupMetadataManager.getOrMaybeCreateStaticStreamsGroupMember, replaceStreamsMember.
"""

from functools import partial

from msgspec.structs import replace

from odradek.coordinator.modern_groups.member import JOINING_EPOCH

from .deadlines import StreamsDeadlines
from .draft import StreamsDraft
from .member import StreamsMember
from .records import current_assignment_record, member_record, member_tombstones, target_record


def joining_member(
    draft: StreamsDraft, member_id: str, instance_id: str | None, deadlines: StreamsDeadlines
) -> StreamsMember:
    """Return the member that joins. Raises ApiError UNRELEASED_INSTANCE_ID."""
    group = draft.group
    present = group.static_member(instance_id)
    if present is None:
        return group.member_or_new(member_id)
    group.check_released(present, member_id)
    member = replace(
        present, member_id=member_id, member_epoch=JOINING_EPOCH, previous_member_epoch=0
    )
    draft.then.append(partial(deadlines.cancel_all, group.key_of(present.member_id)))
    draft.records += member_tombstones(group.group_id, present.member_id)
    draft.records += (
        member_record(group.group_id, member),
        target_record(group.group_id, member_id, group.target(present.member_id), draft.step),
        current_assignment_record(group.group_id, member, draft.step),
    )
    return member
