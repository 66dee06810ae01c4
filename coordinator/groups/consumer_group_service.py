"""The entry point to the consumer groups: finds the shard, commits decisions, fences members.

    heartbeat -> checks -> the group's shard -> ConsumerHeartbeats decides -> GroupDecisions appends
    and replays the records -> deadlines are changed

A request is answered without waiting for other members. Most heartbeats are quiet: they only extend
the member's session, and nothing is decided. Requests of members that use the classic protocol come
through the group coordinator, which looks up the group. In the background, members that miss a
deadline are fenced (removed).

A decision about a large group is made in slices, and waits for another one about the same group
(group_decisions.py). So what a request or a deadline has looked up before is looked up again in
`_decide…`. A `step` is what long work calls again and again.

Kafka: GroupCoordinatorService, CoordinatorTimer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.assignors import configured_assignors
from odradek.coordinator.classic_groups.join import JoinCall
from odradek.coordinator.classic_groups.rebalance import ClassicRebalance
from odradek.coordinator.consumer_groups.classic_joins import ClassicJoins
from odradek.coordinator.consumer_groups.classic_members import ClassicMembers
from odradek.coordinator.consumer_groups.deadlines import ConsumerDeadlines
from odradek.coordinator.consumer_groups.downgrade import Downgrades
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.consumer_groups.heartbeat import ConsumerHeartbeats, GroupServices
from odradek.coordinator.consumer_groups.heartbeat_checks import check_heartbeat
from odradek.coordinator.consumer_groups.leave import Answer, Departures
from odradek.coordinator.consumer_groups.member import ConsumerMember
from odradek.coordinator.consumer_groups.quiet_heartbeat import is_quiet
from odradek.coordinator.consumer_groups.rebalance import Rebalance
from odradek.coordinator.consumer_groups.upgrade import Upgrades
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.group_configs import ConsumerGroupConfigs
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step
from odradek.coordinator.runtime.timers import DeadlineQueue, Now
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.leave_group import LeaveGroupMemberIdentity, LeaveGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

from .fencing import Fencing
from .group_decisions import GroupDecisions
from .group_shards import GroupShard, GroupShards
from .regex_resolution import RegexResolution


class OtherTypeError(Exception):
    """The group has got another type while the request waited."""


class ConsumerGroupService:
    """The consumer groups of all shards."""

    def __init__(
        self,
        *,
        shards: GroupShards,
        deadlines: DeadlineQueue,
        topics: ClusterTopics,
        configs: ConsumerGroupConfigs,
        loop: asyncio.AbstractEventLoop,
        new_member_id: Callable[[], str],
        classic_rebalance: ClassicRebalance,
        decisions: GroupDecisions,
    ) -> None:
        """`classic_rebalance` is used by groups that are downgraded to classic groups.

        Raises ConfigError for an unknown assignor.
        """
        self._shards = shards
        self._configs = configs
        self._decisions = decisions
        fencing = Fencing(
            shards,
            decisions,
            ConsumerGroup,
            make_deadlines=partial(ConsumerDeadlines, deadlines),
            remove=self._remove,
        )
        self.deadlines = fencing.deadlines
        in_turns = classic_rebalance.in_turns
        downgrades = Downgrades(
            topics=topics,
            configs=configs,
            deadlines=self.deadlines,
            classic_rebalance=classic_rebalance,
            find=lambda partition, group_id: shards.at(partition).state.classic_group(group_id),
            in_turns=in_turns,
        )
        self.services = GroupServices(
            topics=topics,
            configs=configs,
            deadlines=self.deadlines,
            regexes=RegexResolution(
                shards, topics, configs.broker.regex_refresh_interval_ms, loop, decisions
            ).updates,
            rebalance=Rebalance(
                topics=topics,
                configs=configs,
                assignors=configured_assignors(configs.broker.assignors),
                deadlines=self.deadlines,
            ),
            departures=Departures(topics, self.deadlines, downgrades.convert_after_departure),
        )
        upgrades = Upgrades(
            topics=topics,
            configs=configs,
            deadlines=self.deadlines,
            has_member=lambda key: fencing.member_now(key) is not None,
            in_turns=in_turns,
        )
        self._heartbeats = ConsumerHeartbeats(
            self.services, new_member_id=new_member_id, upgrade=upgrades.convert
        )
        self.classic_members = ClassicMembers(self.services)
        self._classic_joins = ClassicJoins(
            self.services, downgrades=downgrades, new_member_id=new_member_id
        )

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller, now: Now
    ) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
        """Serve a ConsumerGroupHeartbeat. Returns an awaitable if the decision takes long."""
        try:
            check_heartbeat(request, caller.api_version, self._configs.broker.assignors)
            shard = self._shards.of(request.group_id)
            group = shard.state.groups.get(request.group_id)
            if isinstance(group, ConsumerGroup) and is_quiet(
                group, request, caller, self.services.rebalance, now
            ):
                return self._renew_session(group, request, now)
            decide = partial(self._decide, request, caller)
            return self._decisions.decide(shard, request.group_id, decide, now, _refusal)
        except ApiError as error:
            return _refusal(error)

    def _decide(
        self,
        request: ConsumerGroupHeartbeatRequest,
        caller: Caller,
        shard: GroupShard,
        now: Now,
        step: Step,
    ) -> Answer:
        group = shard.state.groups.get(request.group_id)
        return self._heartbeats.serve(group, shard.partition, request, caller, now, step)

    def _renew_session(
        self, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, now: Now
    ) -> ConsumerGroupHeartbeatResponse:
        """Extend the member's session and answer a quiet heartbeat."""
        group_id, member_id = request.group_id, request.member_id
        until_ms = now.timer_ms + self._configs.session_timeout_ms(group_id)
        self.deadlines.sessions.schedule(group.key_of(member_id), until_ms)
        return ConsumerGroupHeartbeatResponse(
            member_id=member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=self._configs.heartbeat_interval_ms(group_id),
        )

    def join_classic(
        self, shard: GroupShard, call: JoinCall, now: Now
    ) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
        """Serve a JoinGroup to a group that is not empty; error responses have no member id.

        Returns an awaitable if the decision takes long.
        """
        decide = partial(self._decide_join, call)
        try:
            group_id = call.request.group_id
            return self._decisions.decide(shard, group_id, decide, now, _join_refusal)
        except ApiError as error:
            return _join_refusal(error)

    def _decide_join(
        self, call: JoinCall, shard: GroupShard, now: Now, step: Step
    ) -> Outcome[DraftResult[JoinGroupResponse]]:
        group_id = call.request.group_id
        group = shard.state.find_consumer(group_id)
        if group is None or group.is_empty:  # it has changed while the request waited
            text = f"group {group_id} has another type now: the member must join again"
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, text)
        return self._classic_joins.join(group, call, now, step)

    def sync_classic(
        self, shard: GroupShard, request: SyncGroupRequest, now: Now
    ) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
        """Serve a SyncGroup. Returns an awaitable if the decision takes long. Raises ApiError."""
        decide = partial(self._decide_sync, request)
        return self._decisions.decide(shard, request.group_id, decide, now, _sync_refusal)

    def _decide_sync(
        self, request: SyncGroupRequest, shard: GroupShard, now: Now, step: Step
    ) -> Outcome[DraftResult[SyncGroupResponse]]:
        group = shard.state.find_consumer(request.group_id)
        if group is None:  # it has changed while the request waited
            text = f"group {request.group_id} has another type now: the member must join again"
            raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS, text)
        return self.classic_members.sync(group, request, now, step)

    def leave(
        self,
        shard: GroupShard,
        group_id: str,
        leaving: Sequence[LeaveGroupMemberIdentity],
        now: Now,
    ) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
        """Serve a LeaveGroup. Returns an awaitable if the decision takes long. Raises ApiError.

        The awaitable raises OtherTypeError if the group has become a classic group meanwhile.
        """
        decide = partial(self._decide_leave, group_id, leaving)
        return self._decisions.decide(shard, group_id, decide, now, _leave_refusal)

    def _decide_leave(
        self,
        group_id: str,
        leaving: Sequence[LeaveGroupMemberIdentity],
        shard: GroupShard,
        now: Now,
        step: Step,
    ) -> Outcome[DraftResult[LeaveGroupResponse]]:
        group = shard.state.find_consumer(group_id)
        if group is None:
            raise OtherTypeError
        return self.classic_members.leave(group, leaving, now, step)

    # -- deadlines ---------------------------------------------------------------------------------

    def on_shard_loaded(self, shard: GroupShard, now: Now) -> None:
        """Start sessions and revocation deadlines of the groups that have just been loaded."""
        for group in shard.state.of_type(ConsumerGroup):
            group.note_timestamps(now)
            session_ms = now.timer_ms + self._configs.session_timeout_ms(group.group_id)
            for member in group.members.values():
                key = group.key_of(member.member_id)
                self.deadlines.sessions.schedule(key, session_ms)
                timeout_ms = member.rebalance_timeout_ms
                self.deadlines.update_rebalance(key, member, timeout_ms, now)

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """Cancel the deadlines of groups that are no longer served here."""
        for group in shard.state.of_type(ConsumerGroup):
            for member_id in group.members:
                self.deadlines.cancel_all(group.key_of(member_id))

    def _remove(
        self, group: ConsumerGroup, member: ConsumerMember, now: Now, step: Step
    ) -> Outcome[DraftResult[None]]:
        return self.services.departures.remove(group, [member], now, None, step)


def _refusal(error: ApiError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)


def _leave_refusal(error: ApiError) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error.code)


def _sync_refusal(error: ApiError) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error.code)


def _join_refusal(error: ApiError) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=error.code)
