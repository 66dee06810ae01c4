"""Removes members: they leave, or are fenced after a missed deadline.

The tasks of a removed member are free, and the group epoch rises. The next heartbeat of another
member computes new targets. Kafka: streamsGroupLeave, streamsGroupFenceMember.
"""

from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.member import LEAVING_STATIC_EPOCH
from odradek.coordinator.modern_groups.target_assignment import NEVER_COMPUTED_MS
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step, no_step, stepping_if_many
from odradek.coordinator.runtime.timers import Now

from .deadlines import StreamsDeadlines
from .draft import StreamsDraft
from .group import StreamsGroup
from .member import StreamsMember
from .records import current_assignment_record, member_tombstones, target_epoch_record
from .tasks import OWNS_NOTHING

R = TypeVar("R")


def leave_for_a_while(
    group: StreamsGroup, member: StreamsMember, now: Now, reply: R, step: Step = no_step
) -> Outcome[DraftResult[R]]:
    """Let a static member leave: it keeps its tasks until it comes back, or its session ends.

    The epochs of its active tasks become 0, so that they are valid for the member in its place.
    """
    active = {
        name: dict.fromkeys(stepping_if_many(epochs, step), 0)
        for name, epochs in stepping_if_many(member.assigned.active.items(), step)
    }
    away = replace(
        member,
        member_epoch=LEAVING_STATIC_EPOCH,
        assigned=replace(member.assigned, active=active),
        pending_revocation=OWNS_NOTHING,
    )
    draft = StreamsDraft(group, now, step)
    draft.records.append(current_assignment_record(group.group_id, away, step))
    return draft.outcome(reply)


def remove_member(
    group: StreamsGroup,
    member: StreamsMember,
    deadlines: StreamsDeadlines,
    now: Now,
    reply: R,
    *,
    shuts_down: bool = False,
) -> Outcome[DraftResult[R]]:
    """Remove a member. `shuts_down`: it asks the members that remain to stop."""
    draft = StreamsDraft(group, now)
    draft.records += member_tombstones(group.group_id, member.member_id)
    draft.bump_epoch(group.metadata_hash, f"removed {member.member_id}")
    if len(group.members) == 1:  # a member that joins later need not wait
        draft.records.append(target_epoch_record(group.group_id, draft.epoch, NEVER_COMPUTED_MS))
    key = group.key_of(member.member_id)
    draft.then.append(partial(deadlines.cancel_all, key))
    if shuts_down:
        draft.then.append(partial(group.note_shutdown_request, member.member_id))
    return draft.outcome(reply)
