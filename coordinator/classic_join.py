"""How a classic group rebalances: joins, the wait for all of them, the birth of a generation.

    join --> PreparingRebalance --(all are back, or the time is up)--> CompletingRebalance
                                --(nobody is left)-------------------> Empty, journaled

A new group waits `group.initial.rebalance.delay.ms` for company, and again for as long when
somebody came meanwhile, but no longer than the rebalance timeout. Any other rebalance waits for
those who were members, until the rebalance timeout; then dynamic members who have not joined are
out, static ones stay. A member whose id is new to it has 5 minutes for all that: its join may be
parked on behalf of a client that gave up.

Every method returns a GroupOutcome: records to write, and what to do when they are written or could
not be. Kafka: the classicGroupJoin part of GroupMetadataManager.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ..protocol.errors import ApiError, ErrorCode
from ..protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ..protocol.messages.sync_group import SyncGroupResponse
from ..protocol.records.consumer_offsets import GroupMetadataValue
from .classic_group import ClassicGroup, ClassicState, elect_protocol
from .classic_member import (
    NOTHING_TO_WRITE,
    Caller,
    ClassicMember,
    Expiry,
    GroupOutcome,
    JoinReply,
    Now,
    Protocols,
    names_of,
    session_deadline,
)
from .group_settings import GroupSettings
from .outcome import Outcome
from .timers import DeadlineQueue

logger = logging.getLogger("odradek.groups")

# From these versions of JoinGroup on a dynamic member must first ask for its id (KIP-394), and a
# leader that came back under a new id may be told not to assign (KIP-814).
FIRST_WITH_REQUIRED_ID = 4
FIRST_WITH_SKIP_ASSIGNMENT = 9


class JoinCall(NamedTuple):
    """A JoinGroup: what is asked, by whom, and where the answer goes."""

    request: JoinGroupRequest
    caller: Caller
    reply: JoinReply

    @property
    def protocols(self) -> Protocols:
        """What the member offers, in order of preference."""
        return tuple((protocol.name, protocol.metadata) for protocol in self.request.protocols)

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the member may take to join again; JoinGroup v0 has no word for it."""
        timeout_ms = self.request.rebalance_timeout_ms
        return self.request.session_timeout_ms if timeout_ms == -1 else timeout_ms

    def reason(self, what: str) -> str:
        """Why a group rebalances, in the client's words where it has any (KIP-800)."""
        return f"{what} ({self.request.reason})" if self.request.reason else what


class ClassicJoin:
    """Joins and rebalances, for all groups; what there is to remember is in the group."""

    def __init__(
        self,
        settings: GroupSettings,
        deadlines: DeadlineQueue[Expiry],
        new_uuid: Callable[[], str],
    ) -> None:
        self._settings = settings
        self._deadlines = deadlines
        self._new_uuid = new_uuid

    # -- a JoinGroup arrives -----------------------------------------------------------------------

    def join(self, group: ClassicGroup, call: JoinCall, now: Now) -> GroupOutcome:
        """Serve a JoinGroup: it is answered now, or when the rebalance is through.

        Raises ApiError; then `call.reply` is not called.
        """
        request = call.request
        self._check_size(group, request.member_id)
        if group.state is ClassicState.DEAD:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"group {group.group_id} is dead")
        if not group.supports(request.protocol_type, names_of(call.protocols)):
            raise ApiError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                f"group {group.group_id} of type {group.protocol_type!r} has no protocol in common "
                f"with {request.protocol_type!r} {names_of(call.protocols)}",
            )
        if not request.member_id:
            return self._join_new(group, call, now)
        if request.member_id in group.pending_joins:
            return self._join_pending(group, call, now)
        member = group.check_member(request.member_id, request.group_instance_id)
        return self._join_again(group, member, call, now)

    def _check_size(self, group: ClassicGroup, member_id: str) -> None:
        """Raises ApiError GROUP_MAX_SIZE_REACHED.

        In the middle of a rebalance those who have joined count, so that the last to come back are
        out when the limit was lowered; else those who are members.
        """
        member = group.members.get(member_id)
        if group.state is ClassicState.PREPARING_REBALANCE:
            accepted = member is not None and member.awaits_join
            size = group.joined
        else:
            accepted = member is not None
            size = len(group.members)
        if not accepted and size >= self._settings.max_size:
            group.remove(member_id)
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"group {group.group_id} has {size} of {self._settings.max_size} members",
            )

    def _join_new(self, group: ClassicGroup, call: JoinCall, now: Now) -> GroupOutcome:
        instance = call.request.group_instance_id
        name = call.caller.client_id if instance is None else instance
        member_id = f"{name}-{self._new_uuid()}"
        if instance is not None and instance in group.static_member_ids:
            return self._replace_static(group, member_id, call, now)
        if instance is not None or call.caller.api_version < FIRST_WITH_REQUIRED_ID:
            return self._admit(group, member_id, call, now)
        pending = session_deadline(group.group_id, member_id)
        group.pending_joins[member_id] = pending
        self._deadlines.schedule(pending, now.timer_ms + call.request.session_timeout_ms)
        required = ErrorCode.MEMBER_ID_REQUIRED
        call.reply(JoinGroupResponse(member_id=member_id, error_code=required))
        return NOTHING_TO_WRITE

    def _join_pending(self, group: ClassicGroup, call: JoinCall, now: Now) -> GroupOutcome:
        member_id = call.request.member_id
        if call.request.group_instance_id is not None:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"{member_id} was promised to a dynamic member of group {group.group_id}, "
                f"not to {call.request.group_instance_id}",
            )
        self._deadlines.cancel(group.pending_joins[member_id])
        return self._admit(group, member_id, call, now)

    def _admit(self, group: ClassicGroup, member_id: str, call: JoinCall, now: Now) -> GroupOutcome:
        member = ClassicMember(
            member_id=member_id,
            group_instance_id=call.request.group_instance_id,
            client_id=call.caller.client_id,
            client_host=call.caller.client_host,
            rebalance_timeout_ms=call.rebalance_timeout_ms,
            session_timeout_ms=call.request.session_timeout_ms,
            protocol_type=call.request.protocol_type,
            protocols=call.protocols,
            session=session_deadline(group.group_id, member_id),
            is_new=True,
            join_reply=call.reply,
        )
        if group.state is ClassicState.PREPARING_REBALANCE and group.is_initial_rebalance:
            group.new_member_added = True
        group.add(member)
        join_timeout_ms = self._settings.new_member_join_timeout_ms
        self._deadlines.schedule(member.session, now.timer_ms + join_timeout_ms)
        return self.rebalance_or_complete(group, call.reason(f"{member_id} joins"), now)

    def _join_again(
        self, group: ClassicGroup, member: ClassicMember, call: JoinCall, now: Now
    ) -> GroupOutcome:
        unchanged = member.protocols == call.protocols
        leads = group.is_leader(member.member_id)
        if unchanged and group.state is ClassicState.COMPLETING_REBALANCE:
            # It did not get the answer to its join, which was this.
            call.reply(joined(group, member, tell_members=leads))
            return NOTHING_TO_WRITE
        if unchanged and group.state is ClassicState.STABLE and not leads:
            call.reply(joined(group, member))
            return NOTHING_TO_WRITE
        self._update(group, member, call)
        member.join_reply = call.reply
        reason = call.reason(f"{member.member_id} joins again")
        return self.rebalance_or_complete(group, reason, now)

    @staticmethod
    def _update(group: ClassicGroup, member: ClassicMember, call: JoinCall) -> None:
        session_ms = call.request.session_timeout_ms
        group.update(member, call.protocols, call.rebalance_timeout_ms, session_ms)

    # -- a static member comes back without its id -------------------------------------------------

    def _replace_static(
        self, group: ClassicGroup, new_id: str, call: JoinCall, now: Now
    ) -> GroupOutcome:
        """Give the member a new id. A stable group goes on undisturbed if its protocol stays."""
        old_id = group.static_member_ids[call.request.group_instance_id or ""]
        if group.state is ClassicState.STABLE and self._keeps_protocol(group, old_id, call):
            value = group.renamed_value(old_id, new_id, call.protocols)
            settled = partial(self._replaced, group, old_id, new_id, call, now)
            return Outcome(records=(group.record(value),), reply=settled)
        member = group.rename_static(old_id, new_id)
        self.extend_session(member, now)
        self._update(group, member, call)
        member.join_reply = call.reply
        reason = call.reason(f"static member {old_id} came back as {new_id}")
        return self.rebalance_or_complete(group, reason, now)

    @staticmethod
    def _keeps_protocol(group: ClassicGroup, member_id: str, call: JoinCall) -> bool:
        """Whether the group would elect the same protocol with this member's new preferences."""
        preferences = [
            names_of(call.protocols if member.member_id == member_id else member.protocols)
            for member in group.members.values()
        ]
        return elect_protocol(preferences) == group.protocol_name

    def _replaced(
        self,
        group: ClassicGroup,
        old_id: str,
        new_id: str,
        call: JoinCall,
        now: Now,
        error: ErrorCode,
    ) -> None:
        """The new id is written down (then `replay` has renamed the member), or could not be."""
        if error is not ErrorCode.NONE:
            call.reply(
                JoinGroupResponse(
                    error_code=error,
                    generation_id=group.generation_id,
                    protocol_type=group.protocol_type,
                    protocol_name=group.protocol_name,
                    leader=group.leader_id or "",
                )
            )
            return
        member = group.members[new_id]
        self.extend_session(member, now)
        self._update(group, member, call)
        leads = group.is_leader(new_id)
        if call.caller.api_version >= FIRST_WITH_SKIP_ASSIGNMENT:
            call.reply(joined(group, member, tell_members=leads, skip_assignment=leads))
        else:
            # An old client that is told it leads would assign, and so undo what is in force.
            call.reply(joined(group, member, leader=old_id if leads else None))

    # -- rebalances ------------------------------------------------------------------------------

    def rebalance_or_complete(self, group: ClassicGroup, reason: str, now: Now) -> GroupOutcome:
        """Begin a rebalance where none is under way, else end it if all have joined."""
        if group.can_rebalance:
            return self.rebalance(group, reason, now)
        return self.complete_if_all_joined(group, now)

    def rebalance(self, group: ClassicGroup, reason: str, now: Now) -> GroupOutcome:
        """Begin a rebalance: whoever awaits an assignment must join again."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self.refuse_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, now)
        group.pending_syncs.clear()
        self._deadlines.cancel(group.sync_deadline)
        logger.debug(
            "group %s: rebalances at generation %d: %s", group.group_id, group.generation_id, reason
        )
        group.begin_rebalance(reason, now.wall_ms)
        if group.is_initial_rebalance:
            delay_ms = self._settings.initial_rebalance_delay_ms
            self._collect(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0), now)
            return NOTHING_TO_WRITE
        if group.all_have_joined:
            return self.complete(group, now)
        self._deadlines.schedule(group.join_deadline, now.timer_ms + group.rebalance_timeout_ms)
        return NOTHING_TO_WRITE

    def refuse_syncs(self, group: ClassicGroup, error: ErrorCode, now: Now) -> None:
        """There will be no assignment: tell those who wait for one."""
        for member in group.members.values():
            member.assignment = b""
            if member.answer_sync(SyncGroupResponse(error_code=error)):
                self.extend_session(member, now)

    def _collect(self, group: ClassicGroup, delay_ms: int, remaining_ms: int, now: Now) -> None:
        """Wait for more members of a new group."""
        group.initial_delay_ms = (delay_ms, remaining_ms)
        self._deadlines.schedule(group.join_deadline, now.timer_ms + delay_ms)

    def complete_if_all_joined(self, group: ClassicGroup, now: Now) -> GroupOutcome:
        """End the rebalance if nobody is missing; a new group waits for its delay in any case."""
        waits = group.state is not ClassicState.PREPARING_REBALANCE or group.is_initial_rebalance
        if waits or not group.all_have_joined:
            return NOTHING_TO_WRITE
        return self.complete(group, now)

    def expire_join(self, group: ClassicGroup, now: Now) -> GroupOutcome:
        """The time to join is up."""
        if group.state is not ClassicState.PREPARING_REBALANCE:
            return NOTHING_TO_WRITE
        if group.initial_delay_ms is not None and group.new_member_added:
            delay_ms, remaining_ms = group.initial_delay_ms
            if remaining_ms:
                group.new_member_added = False
                again_ms = min(self._settings.initial_rebalance_delay_ms, remaining_ms)
                self._collect(group, again_ms, max(remaining_ms - delay_ms, 0), now)
                return NOTHING_TO_WRITE
        return self.complete(group, now)

    def complete(self, group: ClassicGroup, now: Now) -> GroupOutcome:
        """Begin the next generation with those who have joined, and with static members."""
        self._deadlines.cancel(group.join_deadline)
        group.initial_delay_ms = None
        absent = [m for m in group.members.values() if not (m.awaits_join or m.is_static)]
        for member in absent:
            group.remove(member.member_id)
        if not group.members:
            value = group.empty_value(now.wall_ms)
            return Outcome(records=(group.record(value),), reply=partial(_emptied, group, value))
        if not self._elect_joined_leader(group):
            # Only static members are left and none is back: their sessions decide.
            self._deadlines.schedule(group.join_deadline, now.timer_ms + group.rebalance_timeout_ms)
            return NOTHING_TO_WRITE
        self._begin_generation(group, now)
        return NOTHING_TO_WRITE

    @staticmethod
    def _elect_joined_leader(group: ClassicGroup) -> bool:
        """Let the leader be somebody who has joined; False when nobody has."""
        leader = group.members.get(group.leader_id or "")
        if leader is None or not leader.awaits_join:
            successor = next((m for m in group.members.values() if m.awaits_join), None)
            if successor is None:
                return False
            group.leader_id = successor.member_id
        return True

    def _begin_generation(self, group: ClassicGroup, now: Now) -> None:
        group.begin_generation(now.wall_ms)
        for member in group.members.values():
            leads = group.is_leader(member.member_id)
            member.answer_join(joined(group, member, tell_members=leads))
            self.extend_session(member, now)
            member.is_new = False
        self._deadlines.schedule(group.sync_deadline, now.timer_ms + group.rebalance_timeout_ms)

    def extend_session(self, member: ClassicMember, now: Now) -> None:
        """The member is alive: its session timeout starts anew."""
        self._deadlines.schedule(member.session, now.timer_ms + member.session_timeout_ms)


def joined(
    group: ClassicGroup,
    member: ClassicMember,
    *,
    tell_members: bool = False,
    skip_assignment: bool = False,
    leader: str | None = None,
) -> JoinGroupResponse:
    """The answer to a join: this generation. Only the leader is told who is in it."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=leader or group.leader_id or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=[m.as_joined(group.protocol_name) for m in group.members.values()]
        if tell_members
        else [],
    )


def _emptied(group: ClassicGroup, value: GroupMetadataValue, error: ErrorCode) -> None:
    """The group is empty, and that is written down; or could not be, and it is empty anyway.

    A restart would then wake the generation before, whose members time out: no harm.
    """
    if error is not ErrorCode.NONE:
        logger.warning("group %s: it is empty, but %s on writing it", group.group_id, error.name)
        group.replay(value)
    logger.info("group %s: generation %d is empty", group.group_id, group.generation_id)
