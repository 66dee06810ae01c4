"""What a classic group does between rebalances: the assignment, heartbeats, and who leaves.

The leader's sync brings the assignment. It is journaled first; then the group is stable and whoever
awaits it is answered. Members that have not synced within the rebalance timeout are out, also when
the group is stable already. Kafka: the classicGroupSync, -Heartbeat, -Leave part of
GroupMetadataManager.
"""

import logging
from collections.abc import Sequence
from functools import partial

from odradek.coordinator.outcome import Outcome
from odradek.coordinator.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupMemberResponse
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

from .deadlines import ClassicDeadlines
from .group import ClassicGroup, ClassicState
from .member import (
    NOTHING_TO_WRITE,
    ClassicMember,
    SyncReply,
)
from .rebalance import ClassicRebalance
from .records import generation_value, group_record

logger = logging.getLogger("odradek.groups")

MOST_NAMES = 5


class ClassicSync:
    """Syncs, heartbeats, leaves and expiries, for all groups."""

    def __init__(self, rebalances: ClassicRebalance, deadlines: ClassicDeadlines) -> None:
        self._rebalances = rebalances
        self._deadlines = deadlines

    # -- the assignment ----------------------------------------------------------------------------

    def sync(
        self, group: ClassicGroup, request: SyncGroupRequest, reply: SyncReply, now: Now
    ) -> Outcome[None]:
        """Serve a SyncGroup: `reply` is called now, or when the leader has assigned.

        Raises ApiError; then it is not called.
        """
        member = group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        _check_protocol(request.protocol_type, group.protocol_type)
        _check_protocol(request.protocol_name, group.protocol_name)
        if group.state is ClassicState.PREPARING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.group_id} rebalances")
        group.pending_syncs.discard(member.member_id)
        if not group.pending_syncs:
            group.stop_awaiting_syncs()
        member.sync_reply = reply
        if group.state is ClassicState.STABLE:
            member.answer_sync(assigned(group, member))
            return NOTHING_TO_WRITE
        if not group.is_leader(member.member_id):
            return NOTHING_TO_WRITE
        value = generation_value(group, {a.member_id: a.assignment for a in request.assignments})
        return Outcome(
            reply=None,
            records=(group_record(group.group_id, value),),
            then=(partial(self._stored, group, now),),
            otherwise=partial(self._not_stored, group, now),
        )

    def _not_stored(self, group: ClassicGroup, now: Now, error: ErrorCode) -> None:
        """The assignment could not be written: all must join again."""
        self._rebalances.refuse_syncs(group, error, now)
        # Nobody has joined yet, so this leaves nothing to write.
        self._rebalances.rebalance(group, f"{error.name} on writing the assignment", now)

    def _stored(self, group: ClassicGroup, now: Now) -> None:
        """The assignment is written, and `replay` has made the group stable."""
        for member in group.members.values():
            if member.sync_reply is not None:
                member.answer_sync(assigned(group, member))
                self._deadlines.extend_session(group, member, now)
        logger.info(
            "group %s: generation %d stable with %d %s, protocol %s, leader %s (%s)",
            group.group_id,
            group.generation_id,
            len(group.members),
            "member" if len(group.members) == 1 else "members",
            group.protocol_name,
            group.leader_id,
            group.rebalance_reason,
        )

    def expire_sync(self, group: ClassicGroup, now: Now) -> Outcome[None]:
        """The time to sync is up: who has not is out."""
        late = [member_id for member_id in group.members if member_id in group.pending_syncs]
        if group.state not in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE) or not late:
            return NOTHING_TO_WRITE
        for member_id in late:
            group.remove(member_id)
        return self._rebalances.rebalance(group, f"{some_of(late)} did not sync in time", now)

    # -- signs of life -----------------------------------------------------------------------------

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest, now: Now) -> ErrorCode:
        """Extend the member's session; REBALANCE_IN_PROGRESS is how it learns to join again.

        Raises ApiError.
        """
        member = group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        self._deadlines.extend_session(group, member, now)
        if group.state is ClassicState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def committed(self, group: ClassicGroup, member_id: str, now: Now) -> None:
        """A commit that was allowed is a sign of life too, except while syncs are awaited."""
        member = group.members.get(member_id)
        if member is not None and group.state is not ClassicState.COMPLETING_REBALANCE:
            self._deadlines.extend_session(group, member, now)

    def expire_session(self, group: ClassicGroup, member_id: str, now: Now) -> Outcome[None]:
        """A member, or one that was only promised an id, has not been heard of for too long."""
        if member_id in group.pending_joins:
            group.remove(member_id)
            return self._complete_without(group, now)
        member = group.members.get(member_id)
        if member is None or member.may_stay_silent:
            return NOTHING_TO_WRITE
        group.remove(member_id)
        if group.state is ClassicState.PREPARING_REBALANCE:
            return self._complete_without(group, now)
        return self._rebalances.rebalance_or_complete(group, f"{member_id} timed out", now)

    def _complete_without(self, group: ClassicGroup, now: Now) -> Outcome[None]:
        if group.state is ClassicState.PREPARING_REBALANCE and group.all_have_joined:
            return self._rebalances.complete(group, now)
        return NOTHING_TO_WRITE

    # -- leaving -----------------------------------------------------------------------------------

    def leave(
        self, group: ClassicGroup, leaving: Sequence[LeaveGroupMemberIdentity], now: Now
    ) -> tuple[Outcome[None], list[LeaveGroupMemberResponse]]:
        """Remove members: the outcome for the group, and an answer for each of them.

        Raises ApiError when the group is dead.
        """
        if group.state is ClassicState.DEAD:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {group.group_id} is dead")
        answers = [_leave_one(group, identity) for identity in leaving]
        gone = [
            _farewell(identity)
            for identity, answer in zip(leaving, answers, strict=True)
            if answer.error_code == ErrorCode.NONE
        ]
        if not gone or group.state is ClassicState.EMPTY:
            return NOTHING_TO_WRITE, answers
        return self._rebalances.rebalance_or_complete(group, f"{some_of(gone)} left", now), answers


def _leave_one(group: ClassicGroup, identity: LeaveGroupMemberIdentity) -> LeaveGroupMemberResponse:
    """Remove one: by member id, or by instance id alone, as administrators do (KIP-345)."""
    error = ErrorCode.NONE
    member_id, instance = identity.member_id, identity.group_instance_id
    try:
        if not member_id:
            static = group.roster.of_instance(instance)
            member_id = static.member_id if static else ""
        if member_id not in group.pending_joins:
            group.check_member(member_id, instance)
        group.remove(member_id)
    except ApiError as refusal:
        error = refusal.code
    return LeaveGroupMemberResponse(
        member_id=identity.member_id, group_instance_id=instance, error_code=error
    )


def _farewell(identity: LeaveGroupMemberIdentity) -> str:
    """Who leaves, and why in the client's words where it has any (KIP-800)."""
    who = identity.member_id or identity.group_instance_id or ""
    return f"{who} ({identity.reason})" if identity.reason else who


def some_of(names: Sequence[str]) -> str:
    """The first few names, and how many more there are: a line of the log stays a line."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _check_protocol(asked: str | None, has: str | None) -> None:
    if asked is not None and has is not None and asked != has:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"{asked!r} is not {has!r}")


def assigned(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    """The answer to a sync: what this member is to do."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )
