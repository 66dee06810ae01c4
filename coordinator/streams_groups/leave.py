"""Removes members: they leave, or are fenced after a missed deadline.

The tasks of a removed member are free, and the group epoch rises. The next heartbeat of another
member computes new targets. Kafka: streamsGroupLeave, streamsGroupFenceMember.
"""

from functools import partial
from typing import TypeVar

from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.timers import Now

from .deadlines import StreamsDeadlines
from .draft import StreamsDraft
from .group import StreamsGroup
from .member import StreamsMember
from .records import member_tombstones

R = TypeVar("R")


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
    key = group.key_of(member.member_id)
    draft.then.append(partial(deadlines.cancel_all, key))
    if shuts_down:
        draft.then.append(partial(group.note_shutdown_request, member.member_id))
    return draft.outcome(reply)
