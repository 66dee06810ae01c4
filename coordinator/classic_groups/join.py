"""JoinGroup of a classic group: whether a member may join, and whether the group rebalances.

A dynamic member first gets an id and must join again with it (KIP-394). Until then it is a pending
member: a rebalance waits for it too, for its session timeout. A static member that joins without
its member id gets a new one; a stable group does not rebalance then if its protocol stays the same.
The first join of a new member may be parked for at most 5 minutes, because its client may have
disconnected.

Every method returns an Outcome; rebalance.py has the next steps. Kafka: the classicGroupJoin part
of GroupMetadataManager.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.runtime.outcome import NOTHING_TO_WRITE, Outcome
from odradek.coordinator.runtime.steps import Step, stepping
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.protocol.schema import INT16_MAX

from .deadlines import ClassicDeadlines
from .group import ClassicGroup, ClassicState
from .member import ClassicMember, JoinReply
from .protocols import Protocols, elect_protocol, names_of
from .rebalance import ClassicRebalance, joined
from .records import group_record, replaced_value

# The first versions of JoinGroup in which a dynamic member must first ask for its id (KIP-394), and
# in which the response can tell a leader with a new id not to assign (KIP-814).
FIRST_WITH_REQUIRED_ID = 4
FIRST_WITH_SKIP_ASSIGNMENT = 9
# A member id is a name, a hyphen and a UUID of 36 characters, and a string of an answer.
MAX_NAME_BYTES = INT16_MAX - 37


class JoinCall(NamedTuple):
    """A JoinGroup request: its protocols in order of preference, its client, and its reply."""

    request: JoinGroupRequest
    protocols: Protocols
    caller: Caller
    reply: JoinReply

    @classmethod
    def of(cls, request: JoinGroupRequest, caller: Caller, reply: JoinReply) -> "JoinCall":
        """Make a call of a request."""
        protocols = tuple([(protocol.name, protocol.metadata) for protocol in request.protocols])
        return cls(request, protocols, caller, reply)

    @property
    def rebalance_timeout_ms(self) -> int:
        """The time that the member has to join again; in JoinGroup v0 it is the session timeout."""
        timeout_ms = self.request.rebalance_timeout_ms
        return self.request.session_timeout_ms if timeout_ms == -1 else timeout_ms

    def reason(self, what: str) -> str:
        """Return the reason of a rebalance, with the client's own if it has one (KIP-800)."""
        return f"{what} ({self.request.reason})" if self.request.reason else what


class StaticReturn(NamedTuple):
    """A static member joins a stable group without its member id, and gets a new one."""

    old_id: str
    new_id: str
    call: JoinCall


class ClassicJoin:
    """The joins of all classic groups. The state of each is in its group."""

    def __init__(
        self,
        rebalances: ClassicRebalance,
        settings: GroupSettings,
        deadlines: ClassicDeadlines,
        new_uuid: Callable[[], str],
    ) -> None:
        self._rebalances = rebalances
        self._settings = settings
        self._deadlines = deadlines
        self._new_uuid = new_uuid

    # -- a JoinGroup arrives -----------------------------------------------------------------------

    def join(self, group: ClassicGroup, call: JoinCall, now: Now) -> Outcome[None] | StaticReturn:
        """Serve a JoinGroup: `call.reply` is called now, or when the rebalance is complete.

        Returns a StaticReturn if `return_static` has to decide. Raises ApiError; then the reply is
        not called.
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
        """Raise ApiError GROUP_MAX_SIZE_REACHED if the group is full.

        During a rebalance the joins are counted, so that the last members to join are refused if
        the limit was lowered. Otherwise the members are counted.
        """
        member = group.members.get(member_id)
        if group.state is ClassicState.PREPARING_REBALANCE:
            accepted = member is not None and member.awaits_join
            size = group.roster.joined
        else:
            accepted = member is not None
            size = len(group.members)
        if not accepted and size >= self._settings.max_size:
            group.remove(member_id)
            raise ApiError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"group {group.group_id} has {size} of {self._settings.max_size} members",
            )

    def _join_new(
        self, group: ClassicGroup, call: JoinCall, now: Now
    ) -> Outcome[None] | StaticReturn:
        instance = call.request.group_instance_id
        name = call.caller.client_id if instance is None else instance
        # A longer name would make a member that no answer can mention.
        name = name.encode()[:MAX_NAME_BYTES].decode(errors="ignore")
        member_id = f"{name}-{self._new_uuid()}"
        replaced = group.roster.of_instance(instance)
        if replaced is not None:
            back = StaticReturn(replaced.member_id, member_id, call)
            is_stable = group.state is ClassicState.STABLE
            return back if is_stable else self._rejoin_static(group, back, now)
        if instance is not None or call.caller.api_version < FIRST_WITH_REQUIRED_ID:
            return self._admit(group, member_id, call, now)
        at_ms = now.timer_ms + call.request.session_timeout_ms
        self._deadlines.add_pending_join(group, member_id, at_ms)
        required = ErrorCode.MEMBER_ID_REQUIRED
        call.reply(JoinGroupResponse(member_id=member_id, error_code=required))
        return NOTHING_TO_WRITE

    def _join_pending(self, group: ClassicGroup, call: JoinCall, now: Now) -> Outcome[None]:
        member_id = call.request.member_id
        if call.request.group_instance_id is not None:
            raise ApiError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"{member_id} is reserved for a dynamic member of group {group.group_id}, "
                f"not to {call.request.group_instance_id}",
            )
        return self._admit(group, member_id, call, now)

    def _admit(
        self, group: ClassicGroup, member_id: str, call: JoinCall, now: Now
    ) -> Outcome[None]:
        member = ClassicMember(
            member_id=member_id,
            group_instance_id=call.request.group_instance_id,
            client_id=call.caller.client_id,
            client_host=call.caller.client_host,
            rebalance_timeout_ms=call.rebalance_timeout_ms,
            session_timeout_ms=call.request.session_timeout_ms,
            protocol_type=call.request.protocol_type,
            protocols=call.protocols,
            session=group.pending_joins.get(member_id),
            is_new=True,
            join_reply=call.reply,
        )
        if group.state is ClassicState.PREPARING_REBALANCE and group.is_initial_rebalance:
            group.new_member_added = True
        group.add(member)
        join_timeout_ms = self._settings.new_member_join_timeout_ms
        self._deadlines.schedule_session(group, member, now.timer_ms + join_timeout_ms)
        return self._rebalances.rebalance_or_complete(group, call.reason(f"{member_id} joins"), now)

    def _join_again(
        self, group: ClassicGroup, member: ClassicMember, call: JoinCall, now: Now
    ) -> Outcome[None]:
        unchanged = member.protocols == call.protocols
        leads = group.is_leader(member.member_id)
        if unchanged and group.state is ClassicState.COMPLETING_REBALANCE:
            # The client did not get the response to its join: send it again.
            call.reply(joined(group, member, tell_members=leads))
            return NOTHING_TO_WRITE
        if unchanged and group.state is ClassicState.STABLE and not leads:
            call.reply(joined(group, member))
            return NOTHING_TO_WRITE
        _update(group, member, call)
        group.roster.park_join(member, call.reply)
        reason = call.reason(f"{member.member_id} joins again")
        return self._rebalances.rebalance_or_complete(group, reason, now)

    # -- a static member joins without its member id -----------------------------------------------

    def return_static(
        self, group: ClassicGroup, back: StaticReturn, now: Now, step: Step
    ) -> Outcome[None]:
        """Decide about a member that is back: the group rebalances if its protocol would change.

        Raises ApiError COORDINATOR_LOAD_IN_PROGRESS if the group has changed since the request has
        arrived: the client joins again.
        """
        old = group.members.get(back.old_id)
        if old is None or group.state is not ClassicState.STABLE:
            text = f"group {group.group_id} has changed while {back.old_id} came back"
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text)
        if not _keeps_protocol(group, back, step):
            return Outcome(reply=None, then=(partial(self._rebalance_with, group, back, now),))
        successor = old.renamed(back.new_id)
        successor.protocols = back.call.protocols
        _update_timeouts(successor, back.call)
        value = replaced_value(group, back.old_id, successor, step)
        group.plan(value, successor)
        return Outcome(
            reply=None,
            records=(group_record(group.group_id, value),),
            then=(partial(self._on_static_replaced, group, back, now),),
        )

    def _rebalance_with(self, group: ClassicGroup, back: StaticReturn, now: Now) -> None:
        # The group has a member that has joined, so the outcome has no records.
        self._rejoin_static(group, back, now)

    def _rejoin_static(self, group: ClassicGroup, back: StaticReturn, now: Now) -> Outcome[None]:
        """Give the member a new id, and have the group rebalance."""
        old_id, new_id, call = back
        member = group.rename_static(old_id, new_id)
        self._deadlines.extend_session(group, member, now)
        _update(group, member, call)
        group.roster.park_join(member, call.reply)
        reason = call.reason(f"static member {old_id} came back as {new_id}")
        return self._rebalances.rebalance_or_complete(group, reason, now)

    def return_failed(
        self, group: ClassicGroup, back: StaticReturn, error: ErrorCode, now: Now
    ) -> None:
        """Refuse the join: the new id could not be written.

        As in Kafka the old id's session starts again.
        """
        old = group.members.get(back.old_id)
        if old is not None:
            self._deadlines.extend_session(group, old, now)
        back.call.reply(
            JoinGroupResponse(
                error_code=error,
                generation_id=group.generation_id,
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                leader=group.leader_id or "",
            )
        )

    def _on_static_replaced(self, group: ClassicGroup, back: StaticReturn, now: Now) -> None:
        """Answer the join: the new id is written, and `replay` has given it to the member."""
        old_id, new_id, call = back
        member = group.members[new_id]
        _update(group, member, call)
        self._deadlines.extend_session(group, member, now)
        leads = group.is_leader(new_id)
        if call.caller.api_version >= FIRST_WITH_SKIP_ASSIGNMENT:
            call.reply(joined(group, member, tell_members=leads, skip_assignment=leads))
        else:
            # An old client that is named as leader would replace the current assignment.
            call.reply(joined(group, member, leader=old_id if leads else None))


def _keeps_protocol(group: ClassicGroup, back: StaticReturn, step: Step) -> bool:
    """Whether the group would elect the same protocol with this member's new preferences."""
    preferences = (
        names_of(back.call.protocols if member.member_id == back.old_id else member.protocols)
        for member in stepping(group.members.values(), step)
    )
    return elect_protocol(preferences) == group.protocol_name


def _update(group: ClassicGroup, member: ClassicMember, call: JoinCall) -> None:
    """Take over the protocols and timeouts of a member that joins again."""
    group.roster.change_protocols(member, call.protocols)
    _update_timeouts(member, call)


def _update_timeouts(member: ClassicMember, call: JoinCall) -> None:
    member.rebalance_timeout_ms = call.rebalance_timeout_ms
    member.session_timeout_ms = call.request.session_timeout_ms
