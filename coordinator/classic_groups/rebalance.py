"""How a classic group rebalances: it waits for all members, then begins a new generation.

    join --> PreparingRebalance --(all have joined, or the time has ended)--> CompletingRebalance
                                --(no member is left)-----------------------> Empty, journaled

A group that was empty waits `group.initial.rebalance.delay.ms` for more members, and again as long
if a member joined meanwhile, but no longer than the rebalance timeout. Any other rebalance waits
for the existing members until the rebalance timeout. Then dynamic members that have not joined are
removed; static ones stay.

A method that may end a rebalance returns an Outcome: records to write, and what to do when they are
written or could not be.

Kafka: prepareRebalance, completeClassicGroupJoin and their timers in GroupMetadataManager.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.runtime.in_turns import InTurns
from odradek.coordinator.runtime.outcome import NOTHING_TO_WRITE, Outcome
from odradek.coordinator.runtime.timers import Now
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.protocol.schema import replace

from .deadlines import ClassicDeadlines
from .group import ClassicGroup, ClassicState
from .member import ClassicMember, JoinReply, SyncReply
from .records import generation_value, group_record

logger = logging.getLogger("odradek.groups")


class ClassicRebalance:
    """The rebalances of all classic groups. The state of each is in its group."""

    def __init__(
        self, settings: GroupSettings, deadlines: ClassicDeadlines, in_turns: InTurns
    ) -> None:
        self._settings = settings
        self.deadlines = deadlines
        self.in_turns = in_turns

    def has_room_for(self, size: int) -> bool:
        """Whether a group may have this many members."""
        return size <= self._settings.max_size

    def rebalance_or_complete(self, group: ClassicGroup, reason: str, now: Now) -> Outcome[None]:
        """Begin a rebalance if none is in progress, else complete it if all have joined."""
        if group.can_rebalance:
            return self.rebalance(group, reason, now)
        return self.complete_if_all_joined(group, now)

    def rebalance(self, group: ClassicGroup, reason: str, now: Now) -> Outcome[None]:
        """Begin a rebalance. Parked syncs are answered REBALANCE_IN_PROGRESS."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self.refuse_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, now)
        group.pending_syncs.clear()
        group.stop_awaiting_syncs()
        logger.debug(
            "group %s: rebalances at generation %d: %s", group.group_id, group.generation_id, reason
        )
        group.begin_rebalance(reason, now.wall_ms)
        if group.is_initial_rebalance:
            delay_ms = self._settings.initial_rebalance_delay_ms
            remaining_ms = max(group.roster.rebalance_timeout_ms - delay_ms, 0)
            self._collect(group, delay_ms, remaining_ms, now)
            return NOTHING_TO_WRITE
        if group.all_have_joined:
            return self.complete(group, now)
        self._wait_for_joins(group, now)
        return NOTHING_TO_WRITE

    def refuse_syncs(self, group: ClassicGroup, error: ErrorCode, now: Now) -> None:
        """Drop all assignments, and answer the parked syncs with this error."""
        waiting = []
        for member in group.members.values():
            member.assignment = b""
            reply = member.take_sync()
            if reply is not None:
                waiting.append(reply)
                self.deadlines.extend_session(group, member, now)
        self.in_turns.run(_refuse(waiting, error))

    def _collect(self, group: ClassicGroup, delay_ms: int, remaining_ms: int, now: Now) -> None:
        """Wait for more members of a group that was empty."""
        group.initial_delay_ms = (delay_ms, remaining_ms)
        self.deadlines.await_joins(group, now.timer_ms + delay_ms)

    def _wait_for_joins(self, group: ClassicGroup, now: Now) -> None:
        """Wait for missing members until the longest rebalance timeout."""
        timeout_ms = group.roster.rebalance_timeout_ms
        self.deadlines.await_joins(group, now.timer_ms + timeout_ms)

    def complete_if_all_joined(self, group: ClassicGroup, now: Now) -> Outcome[None]:
        """Complete the rebalance if all have joined. An initial rebalance waits for its delay."""
        waits = group.state is not ClassicState.PREPARING_REBALANCE or group.is_initial_rebalance
        if waits or not group.all_have_joined:
            return NOTHING_TO_WRITE
        return self.complete(group, now)

    def expire_join(self, group: ClassicGroup, now: Now) -> Outcome[None]:
        """End the time to join: wait once more for a new group, or complete the rebalance."""
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

    def complete(self, group: ClassicGroup, now: Now) -> Outcome[None]:
        """Begin the next generation with the members that have joined and the static ones."""
        group.stop_awaiting_joins()
        group.initial_delay_ms = None
        absent = [m for m in group.members.values() if not (m.awaits_join or m.is_static)]
        for member in absent:
            group.remove(member.member_id)
        if group.members and not self._elect_joined_leader(group):
            # Only static members are left and none has joined: wait until their sessions end.
            self._wait_for_joins(group, now)
            return NOTHING_TO_WRITE
        group.begin_generation(now.wall_ms)
        if not group.members:
            record = group_record(group.group_id, generation_value(group, {}))
            return Outcome(
                reply=None,
                records=(record,),
                then=(partial(_on_empty, group),),
                otherwise=partial(_on_empty, group),
            )
        self._begin_syncs(group, now)
        return NOTHING_TO_WRITE

    @staticmethod
    def _elect_joined_leader(group: ClassicGroup) -> bool:
        """Replace a leader that has not joined. Returns False if no member has."""
        leader = group.members.get(group.leader_id or "")
        if leader is None or not leader.awaits_join:
            successor = next((m for m in group.members.values() if m.awaits_join), None)
            if successor is None:
                return False
            group.leader_id = successor.member_id
        return True

    def _begin_syncs(self, group: ClassicGroup, now: Now) -> None:
        """Answer the parked joins with the new generation, and wait for the syncs."""
        waiting = []
        for member in group.members.values():
            reply = group.roster.take_join(member)
            if reply is not None:
                waiting.append((member, reply))
            self.deadlines.extend_session(group, member, now)
            member.is_new = False
        self.in_turns.run(_answer_joins(group, waiting))
        timeout_ms = group.roster.rebalance_timeout_ms
        self.deadlines.await_syncs(group, now.timer_ms + timeout_ms)


def joined(
    group: ClassicGroup,
    member: ClassicMember,
    *,
    tell_members: bool = False,
    skip_assignment: bool = False,
    leader: str | None = None,
) -> JoinGroupResponse:
    """Make the JoinGroup response of the current generation; only the leader gets the members."""
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


def _answer_joins(
    group: ClassicGroup, waiting: Sequence[tuple[ClassicMember, JoinReply]]
) -> Iterator[None]:
    """Answer the joins with the generation that has just begun."""
    leader = group.members[group.leader_id or ""]
    of_leader = joined(group, leader, tell_members=True)
    of_others = joined(group, leader)
    for member, reply in waiting:
        if member is leader:
            reply(of_leader)
        else:
            reply(replace(of_others, member_id=member.member_id))
        yield


def _refuse(waiting: Iterable[SyncReply], error: ErrorCode) -> Iterator[None]:
    for reply in waiting:
        reply(SyncGroupResponse(error_code=error))
        yield


def _on_empty(group: ClassicGroup, error: ErrorCode = ErrorCode.NONE) -> None:
    """Log that the group is empty, also if the record could not be written.

    Without the record a restart restores the generation before, and its members time out.
    """
    if error is not ErrorCode.NONE:
        logger.warning("group %s: it is empty, but %s on writing it", group.group_id, error.name)
    logger.info("group %s: generation %d is empty", group.group_id, group.generation_id)
