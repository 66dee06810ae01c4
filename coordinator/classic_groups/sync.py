"""SyncGroup, Heartbeat and LeaveGroup of a classic group, and the expiry of its members.

The leader's sync has the assignment. It is journaled first; then the group is stable and the parked
syncs are answered. Members that have not synced within the rebalance timeout are removed, even if
the group is stable already.

Kafka: the methods classicGroupSync, classicGroupHeartbeat and classicGroupLeave of
GroupMetadataManager, and the timers of members.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from odradek.coordinator.runtime.outcome import NOTHING_TO_WRITE, JournalRecord, Outcome
from odradek.coordinator.runtime.steps import Step, stepping
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupMemberResponse
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

from .deadlines import ClassicDeadlines
from .group import ClassicGroup, ClassicState
from .member import ClassicMember, SyncReply
from .rebalance import ClassicRebalance
from .records import generation_value, group_record

logger = logging.getLogger("odradek.groups")

MAX_LOGGED_NAMES = 5


class Leaving(NamedTuple):
    """The members of a LeaveGroup: an answer for each, and the indexes of those that exist."""

    answers: list[LeaveGroupMemberResponse]
    present: list[int]


class ClassicSync:
    """The syncs, heartbeats, leaves and expiries of all classic groups."""

    def __init__(self, rebalances: ClassicRebalance, deadlines: ClassicDeadlines) -> None:
        self._rebalances = rebalances
        self._deadlines = deadlines

    # -- the assignment ----------------------------------------------------------------------------

    def sync(self, group: ClassicGroup, request: SyncGroupRequest, reply: SyncReply) -> bool:
        """Serve a SyncGroup: `reply` is called now, or when the leader has sent the assignment.

        Returns whether this is the leader's: then `assign` decides, and answers it. Raises
        ApiError; then it is not called.
        """
        member = group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        check_protocol(request.protocol_type, group.protocol_type)
        check_protocol(request.protocol_name, group.protocol_name)
        if group.state is ClassicState.PREPARING_REBALANCE:
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {group.group_id} rebalances")
        group.pending_syncs.discard(member.member_id)
        if not group.pending_syncs:
            group.stop_awaiting_syncs()
        member.sync_reply = reply
        if group.state is ClassicState.STABLE:
            member.answer_sync(assigned(group, member))
            return False
        return group.is_leader(member.member_id)

    def assign(
        self, group: ClassicGroup, request: SyncGroupRequest, now: Now, step: Step
    ) -> tuple[JournalRecord, Callable[[], None]]:
        """Decide about the leader's assignment: what to write, and what to do then."""
        assignments = {each.member_id: each.assignment for each in request.assignments}
        value = generation_value(group, assignments, step)
        group.plan(value)
        return group_record(group.group_id, value), partial(self._on_assignment_written, group, now)

    def assignment_failed(
        self, group: ClassicGroup, request: SyncGroupRequest, error: ErrorCode, now: Now
    ) -> None:
        """Refuse the parked syncs and rebalance: the assignment could not be written.

        In Kafka, too, UNKNOWN_SERVER_ERROR says that the record of all members is larger than
        max.message.bytes of `__consumer_offsets` (appendGroupMetadataErrorToResponseError).
        """
        if not awaits_assignment(group, request):
            return
        self._rebalances.refuse_syncs(group, error, now)
        # No member has joined yet, so the outcome has no records.
        self._rebalances.rebalance(group, f"{error.name} on writing the assignment", now)

    def _on_assignment_written(self, group: ClassicGroup, now: Now) -> None:
        """Answer the parked syncs: the assignment is written and the group is stable."""
        waiting = []
        for member in group.members.values():
            reply = member.take_sync()
            if reply is not None:
                waiting.append((member.assignment, reply))
                self._deadlines.extend_session(group, member, now)
        self._rebalances.in_turns.run(_answer_syncs(group, waiting))
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
        """End the time to sync: remove the members that have not synced, and rebalance."""
        late = [member_id for member_id in group.members if member_id in group.pending_syncs]
        if group.state not in (ClassicState.COMPLETING_REBALANCE, ClassicState.STABLE) or not late:
            return NOTHING_TO_WRITE
        for member_id in late:
            group.remove(member_id)
        return self._rebalances.rebalance(
            group, f"{first_names(late, len(late))} did not sync in time", now
        )

    # -- sessions ----------------------------------------------------------------------------------

    def heartbeat(self, group: ClassicGroup, request: HeartbeatRequest, now: Now) -> ErrorCode:
        """Restart the member's session. Returns REBALANCE_IN_PROGRESS if it must join again.

        Raises ApiError.
        """
        member = group.check_member(request.member_id, request.group_instance_id)
        group.check_generation(request.generation_id)
        self._deadlines.extend_session(group, member, now)
        if group.state is ClassicState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def committed(self, group: ClassicGroup, member_id: str, now: Now) -> None:
        """Restart the session of a member that has committed offsets, unless syncs are awaited."""
        member = group.members.get(member_id)
        if member is not None and group.state is not ClassicState.COMPLETING_REBALANCE:
            self._deadlines.extend_session(group, member, now)

    def expire_session(self, group: ClassicGroup, member_id: str, now: Now) -> Outcome[None]:
        """Remove a member, or a pending one, whose session has ended."""
        if member_id in group.pending_joins:
            group.remove(member_id)
            return self._complete_after_removal(group, now)
        member = group.members.get(member_id)
        if member is None or member.survives_session_timeout:
            return NOTHING_TO_WRITE
        group.remove(member_id)
        if group.state is ClassicState.PREPARING_REBALANCE:
            return self._complete_after_removal(group, now)
        return self._rebalances.rebalance_or_complete(group, f"{member_id} timed out", now)

    def _complete_after_removal(self, group: ClassicGroup, now: Now) -> Outcome[None]:
        """Complete a rebalance that has only waited for the removed member."""
        if group.state is ClassicState.PREPARING_REBALANCE and group.all_have_joined:
            return self._rebalances.complete(group, now)
        return NOTHING_TO_WRITE

    # -- leaving -----------------------------------------------------------------------------------

    def leave(
        self,
        group: ClassicGroup,
        leaving: Sequence[LeaveGroupMemberIdentity],
        present: Iterable[int],
        answers: list[LeaveGroupMemberResponse],
        now: Now,
    ) -> Outcome[None]:
        """Remove members. Returns the outcome for the group.

        `present`: indexes of some that `find_leaving` has found. If one is not there any more, its
        answer changes.
        """
        left = []
        for index in present:
            refusal = _leave_one(group, leaving[index])
            if refusal is None:
                left.append(leaving[index])
            else:
                answers[index] = leave_result(leaving[index], refusal)
        if not left or group.state is ClassicState.EMPTY:
            return NOTHING_TO_WRITE
        names = [_leaver_text(identity) for identity in left[:MAX_LOGGED_NAMES]]
        reason = f"{first_names(names, len(left))} left"
        return self._rebalances.rebalance_or_complete(group, reason, now)


def find_leaving(
    group: ClassicGroup, leaving: Iterable[LeaveGroupMemberIdentity], step: Step
) -> Leaving:
    """Look the members up in steps: a request may name a hundred thousand that do not exist."""
    answers: list[LeaveGroupMemberResponse] = []
    present: dict[str, int] = {}
    for index, identity in enumerate(stepping(leaving, step)):
        try:
            member_id = _leaving_id(group, identity)
        except ApiError as refusal:
            static = group.roster.of_instance(identity.group_instance_id)
            is_freed = static is not None and static.member_id in present  # it leaves before
            error = ErrorCode.UNKNOWN_MEMBER_ID if is_freed else refusal.code
            answers.append(leave_result(identity, error))
        else:
            is_repeated = present.setdefault(member_id, index) != index
            error = ErrorCode.UNKNOWN_MEMBER_ID if is_repeated else ErrorCode.NONE
            answers.append(leave_result(identity, error))
    return Leaving(answers, list(present.values()))


def _leaving_id(group: ClassicGroup, identity: LeaveGroupMemberIdentity) -> str:
    """Return the id of a member. Admin clients name it by instance id alone (KIP-345).

    Raises ApiError.
    """
    member_id, instance = identity.member_id, identity.group_instance_id
    if not member_id:
        static = group.roster.of_instance(instance)
        member_id = static.member_id if static else ""
    if member_id not in group.pending_joins:
        group.check_member(member_id, instance)
    return member_id


def _leave_one(group: ClassicGroup, identity: LeaveGroupMemberIdentity) -> ErrorCode | None:
    """Remove a member. Returns the error if it is not there any more."""
    try:
        group.remove(_leaving_id(group, identity))
    except ApiError as refusal:
        return refusal.code
    return None


def leave_result(
    identity: LeaveGroupMemberIdentity, error: ErrorCode = ErrorCode.NONE
) -> LeaveGroupMemberResponse:
    """Return the entry of a LeaveGroup response for one member."""
    return LeaveGroupMemberResponse(
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        error_code=error,
    )


def _leaver_text(identity: LeaveGroupMemberIdentity) -> str:
    """Return the id of a member that leaves, with the client's reason if it has one (KIP-800)."""
    who = identity.member_id or identity.group_instance_id or ""
    return f"{who} ({identity.reason})" if identity.reason else who


def first_names(names: Sequence[str], count: int) -> str:
    """Return the first few of `count` names and the number of the others, for a log line."""
    more = count - MAX_LOGGED_NAMES
    return ", ".join(names[:MAX_LOGGED_NAMES]) + (f" and {more} more" if more > 0 else "")


def check_protocol(requested: str | None, actual: str | None) -> None:
    """Check the protocol type or name of a SyncGroup, if it has one (v5 and above).

    Raises ApiError INCONSISTENT_GROUP_PROTOCOL.
    """
    if requested is not None and actual is not None and requested != actual:
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"the protocol is {actual!r}, not {requested!r}"
        )


def awaits_assignment(group: ClassicGroup, request: SyncGroupRequest) -> bool:
    """Whether the group still waits for the assignment of this request."""
    return (
        group.state is ClassicState.COMPLETING_REBALANCE
        and group.generation_id == request.generation_id
    )


def _answer_syncs(
    group: ClassicGroup, waiting: Iterable[tuple[bytes, SyncReply]]
) -> Iterator[None]:
    protocol_type, protocol_name = group.protocol_type, group.protocol_name
    for assignment, reply in waiting:
        reply(
            SyncGroupResponse(
                protocol_type=protocol_type, protocol_name=protocol_name, assignment=assignment
            )
        )
        yield


def assigned(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    """Make the SyncGroup response with the member's assignment."""
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=member.assignment,
    )
