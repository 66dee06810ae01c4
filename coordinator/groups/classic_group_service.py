"""The entry point to the classic groups: commits their decisions and keeps their deadlines.

    request -> ClassicJoin or ClassicSync decides -> append, replay -> parked replies are released

A request that must wait for other members leaves its reply with the member. Kafka:
GroupMetadataManager, the methods of classic groups.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.classic_groups.deadlines import ClassicDeadlines, Expiries
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.classic_groups.join import ClassicJoin, JoinCall, StaticReturn
from odradek.coordinator.classic_groups.member import SyncReply
from odradek.coordinator.classic_groups.rebalance import ClassicRebalance
from odradek.coordinator.classic_groups.sync import ClassicSync, awaits_assignment, find_leaving
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.runtime.in_turns import InTurns
from odradek.coordinator.runtime.outcome import NOTHING_TO_WRITE, Outcome
from odradek.coordinator.runtime.steps import Step, stepping
from odradek.coordinator.runtime.timers import DeadlineQueue, Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupRequest

from .group_decisions import Decide, GroupDecisions
from .group_shards import GroupShard, GroupShards

logger = logging.getLogger("odradek.groups")

# Answers the members that wait for a decision that could not be made or written.
Failed = Callable[[ErrorCode, Now], None]

# At most this many members leave in one turn of the loop: each takes 3 us.
LEAVES_AT_ONCE = 300


class ClassicGroupService:
    """The classic groups of all shards."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        shards: GroupShards,
        deadlines: DeadlineQueue,
        new_uuid: Callable[[], str],
        in_turns: InTurns,
        decisions: GroupDecisions,
    ) -> None:
        """`new_uuid` makes the random part of a member's id."""
        self._settings = settings
        self._shards = shards
        self._decisions = decisions
        self._deadlines = ClassicDeadlines(
            deadlines,
            Expiries(
                session=self._expire_session, joins=self._expire_joins, syncs=self._expire_syncs
            ),
        )
        self.rebalances = ClassicRebalance(settings, self._deadlines, in_turns)
        self._joins = ClassicJoin(self.rebalances, settings, self._deadlines, new_uuid)
        self.syncs = ClassicSync(self.rebalances, self._deadlines)

    # -- requests ----------------------------------------------------------------------------------

    def join(self, shard: GroupShard, call: JoinCall, now: Now) -> None:
        """Serve a JoinGroup; the call's reply gets the response. Raises ApiError; then it does not.

        A request without a member id creates the group if it does not exist.
        """
        group_id = call.request.group_id
        group = shard.state.find_classic(group_id)
        if group is None:
            if call.request.member_id:
                raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {group_id}")
            shard.journal.commit(shard.state.create(group_id, now.wall_ms), now.wall_ms)
            group = shard.state.classic_group(group_id)
        found = self._joins.join(group, call, now)
        if isinstance(found, StaticReturn):
            decide = partial(self._decide_return, group, found)
            self._decide(shard, group, decide, partial(self._return_failed, group, found), now)
        else:
            self._commit(shard, found, now)

    def _decide_return(
        self, group: ClassicGroup, back: StaticReturn, shard: GroupShard, now: Now, step: Step
    ) -> Outcome[DraftResult[None]]:
        if shard.state.groups.get(group.group_id) is not group:
            text = f"group {group.group_id} has another type now"
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text)
        outcome = self._joins.return_static(group, back, now, step)
        result = DraftResult(group.group_id, None)
        return Outcome(reply=result, records=outcome.records, then=outcome.then)

    def _return_failed(
        self, group: ClassicGroup, back: StaticReturn, error: ErrorCode, now: Now
    ) -> None:
        if self._has(group):
            self._joins.return_failed(group, back, error, now)
        else:
            back.call.reply(JoinGroupResponse(error_code=error))

    def _has(self, group: ClassicGroup) -> bool:
        """Whether the group is the one of its id: its shard may have been lost meanwhile."""
        try:
            groups = self._shards.at(group.partition).state.groups
        except ApiError:
            return False
        return groups.get(group.group_id) is group

    def sync(
        self,
        shard: GroupShard,
        group: ClassicGroup,
        request: SyncGroupRequest,
        reply: SyncReply,
        now: Now,
    ) -> None:
        """Serve a SyncGroup; `reply` gets the response. Raises ApiError; then it does not."""
        if not self.syncs.sync(group, request, reply):
            return
        decide = partial(self._decide_assignment, group, request)
        failed = partial(self.syncs.assignment_failed, group, request)
        self._decide(shard, group, decide, failed, now)

    def _decide_assignment(
        self,
        group: ClassicGroup,
        request: SyncGroupRequest,
        shard: GroupShard,
        now: Now,
        step: Step,
    ) -> Outcome[DraftResult[None]]:
        result = DraftResult(group.group_id, None)
        is_current = shard.state.groups.get(group.group_id) is group
        if not is_current or not awaits_assignment(group, request):  # since the request has arrived
            return Outcome(reply=result)
        record, then = self.syncs.assign(group, request, now, step)
        return Outcome(reply=result, records=(record,), then=(then,))

    def _decide(
        self,
        shard: GroupShard,
        group: ClassicGroup,
        decide: Decide[None],
        failed: Failed,
        now: Now,
    ) -> None:
        """Make a decision about the group, now or in slices. It or `failed` answers the members."""
        try:
            pending = self._decisions.decide(shard, group.group_id, decide, now)
        except Exception as error:  # noqa: BLE001 # after a bug, too, the members must not wait
            self._failed(group, failed, error)
        else:
            if pending is not None:
                self._decisions.keep(self._wait_for(pending, group, failed))

    async def _wait_for(
        self, pending: Awaitable[None], group: ClassicGroup, failed: Failed
    ) -> None:
        try:
            await pending
        except Exception as error:  # noqa: BLE001 # as in `_decide`
            self._failed(group, failed, error)
            self._decisions.alarm.set(self._decisions.clock())

    def _failed(self, group: ClassicGroup, failed: Failed, error: Exception) -> None:
        code = ErrorCode.UNKNOWN_SERVER_ERROR
        if isinstance(error, ApiError):
            code = error.code
            logger.warning("a group's metadata could not be written: %s", error)
        else:
            logger.error("a decision failed: group %s", group.group_id, exc_info=error)
        failed(code, self._decisions.clock())

    def leave(
        self,
        shard: GroupShard,
        group: ClassicGroup,
        leaving: Sequence[LeaveGroupMemberIdentity],
        step: Step,
    ) -> LeaveGroupResponse:
        """Serve a LeaveGroup: a result for each member. Raises ApiError.

        Thousands of members leave in parts, as if each part had a request of its own.
        """
        answers, present = find_leaving(group, leaving, step)
        for start in stepping(range(0, len(present), LEAVES_AT_ONCE), step):
            if self._shards.at(group.partition).state.groups.get(group.group_id) is not group:
                text = f"group {group.group_id} has another type now"
                raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text)
            now = self._decisions.clock()
            part = present[start : start + LEAVES_AT_ONCE]
            outcome = self.syncs.leave(group, leaving, part, answers, now)
            shard.journal.commit(outcome, now.wall_ms)
            self._decisions.alarm.set(now)  # the next step may be the last: the client may be gone
        return LeaveGroupResponse(members=answers)

    def on_commit(self, shard: GroupShard, group_id: str, member_id: str, now: Now) -> None:
        """Restart the session of a member that commits offsets."""
        group = shard.state.find_classic(group_id)
        if group is not None:
            self.syncs.committed(group, member_id, now)

    # -- shards that are loaded and unloaded -------------------------------------------------------

    def on_shard_loaded(self, shard: GroupShard, now: Now) -> None:
        """Restart all sessions, and rebalance the groups that exceed a lowered group.max.size."""
        for group in shard.state.of_type(ClassicGroup):
            for member in group.members.values():
                self._deadlines.extend_session(group, member, now)
            if len(group.members) > self._settings.max_size:
                reason = f"{len(group.members)} members are more than group.max.size"
                self._commit(shard, self.rebalances.rebalance(group, reason, now), now)

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """Answer the parked requests NOT_COORDINATOR; cancel the deadlines."""
        for group in shard.state.of_type(ClassicGroup):
            group.roster.refuse_all(ErrorCode.NOT_COORDINATOR)
            group.cancel_deadlines()

    # -- deadlines ---------------------------------------------------------------------------------

    def _expire_session(self, subject: tuple[ClassicGroup, str], now: Now) -> None:
        group, member_id = subject
        self._expire(group, partial(self.syncs.expire_session, group, member_id, now), now)

    def _expire_joins(self, group: ClassicGroup, now: Now) -> None:
        self._expire(group, partial(self.rebalances.expire_join, group, now), now)

    def _expire_syncs(self, group: ClassicGroup, now: Now) -> None:
        self._expire(group, partial(self.syncs.expire_sync, group, now), now)

    def _expire(self, group: ClassicGroup, decide: Callable[[], Outcome[None]], now: Now) -> None:
        """Commit what is decided, unless another group has the place of this one now."""
        shard = self._shards.at(group.partition)
        if shard.state.groups.get(group.group_id) is group:
            self._commit(shard, decide(), now)

    @staticmethod
    def _commit(shard: GroupShard, outcome: Outcome[None], now: Now) -> None:
        """Write a decision; the outcome itself answers the parked requests, also if it fails."""
        if outcome is NOTHING_TO_WRITE:  # of a thousand joins all but the last only wait
            return
        try:
            shard.journal.commit(outcome, now.wall_ms)
        except ApiError as error:
            logger.warning("a group's metadata could not be written: %s", error)
