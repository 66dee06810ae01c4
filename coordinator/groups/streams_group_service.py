"""The entry point to the streams groups: finds the shard, commits decisions, keeps deadlines.

    heartbeat -> checks -> the group's shard -> StreamsHeartbeats decides -> append, replay -> then

A decision that takes long is made in slices (group_decisions.py). In the background, members that
miss a deadline are fenced, and the first tasks of a group are assigned when its initial rebalance
delay has passed.

Kafka: GroupCoordinatorService, CoordinatorTimer.
"""

import logging
from collections.abc import Awaitable, Iterable
from functools import partial

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.modern_groups.draft import DraftResult
from odradek.coordinator.modern_groups.topics_view import ClusterTopics
from odradek.coordinator.runtime.outcome import Outcome
from odradek.coordinator.runtime.steps import Step, no_step
from odradek.coordinator.runtime.timers import DeadlineQueue, Now
from odradek.coordinator.streams_groups.deadlines import GroupKey, StreamsDeadlines
from odradek.coordinator.streams_groups.draft import StreamsDraft
from odradek.coordinator.streams_groups.group import StreamsGroup
from odradek.coordinator.streams_groups.group_configs import StreamsGroupConfigs
from odradek.coordinator.streams_groups.heartbeat import Answer, HeartbeatReply, StreamsHeartbeats
from odradek.coordinator.streams_groups.heartbeat_checks import check_heartbeat
from odradek.coordinator.streams_groups.leave import remove_member
from odradek.coordinator.streams_groups.member import StreamsMember
from odradek.coordinator.streams_groups.rebalance import StreamsRebalance
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)

from .fencing import Fencing
from .group_decisions import GroupDecisions
from .group_shards import GroupShard, GroupShards
from .modern_group_commits import RETRY_MS, commit

logger = logging.getLogger("odradek.groups")


class StreamsGroupService:
    """The streams groups of all shards."""

    def __init__(
        self,
        *,
        shards: GroupShards,
        deadlines: DeadlineQueue,
        topics: ClusterTopics,
        configs: StreamsGroupConfigs,
        decisions: GroupDecisions,
    ) -> None:
        self._shards = shards
        self._decisions = decisions
        self._configs = configs
        self.deadlines = Fencing(
            shards,
            decisions,
            StreamsGroup,
            make_deadlines=lambda fence: StreamsDeadlines(
                deadlines, fence, self._end_initial_delay
            ),
            remove=self._removal,
        ).deadlines
        self._rebalance = StreamsRebalance(topics=topics, configs=configs, deadlines=self.deadlines)
        self._heartbeats = StreamsHeartbeats(
            configs=configs, deadlines=self.deadlines, rebalance=self._rebalance
        )

    def heartbeat(
        self, request: StreamsGroupHeartbeatRequest, caller: Caller, now: Now
    ) -> HeartbeatReply | Awaitable[HeartbeatReply]:
        """Serve a StreamsGroupHeartbeat."""
        decide = partial(self._decide, request, caller)
        try:
            shard = self._shards.of(request.group_id)
            return self._decisions.decide(shard, request.group_id, decide, now, _refusal)
        except ApiError as error:
            return _refusal(error)

    def _decide(
        self,
        request: StreamsGroupHeartbeatRequest,
        caller: Caller,
        shard: GroupShard,
        now: Now,
        step: Step,
    ) -> Answer:
        check_heartbeat(request, step)
        group = shard.state.groups.get(request.group_id)
        return self._heartbeats.serve(group, shard.partition, request, caller, now, step)

    def remove(
        self, shard: GroupShard, group: StreamsGroup, member_ids: Iterable[str], now: Now
    ) -> None:
        """Remove members as if their sessions had expired. Unknown ones are ignored."""
        for member_id in member_ids:
            member = group.members.get(member_id)
            if member is not None:
                commit(shard, self._removal(group, member, now), now)

    # -- deadlines ---------------------------------------------------------------------------------

    def on_shard_loaded(self, shard: GroupShard, now: Now) -> None:
        """Start sessions and revocation deadlines of the groups that have just been loaded."""
        for group in shard.state.of_type(StreamsGroup):
            group.note_timestamps(now)
            session_ms = now.timer_ms + self._configs.session_timeout_ms(group.group_id)
            for member in group.members.values():
                key = group.key_of(member.member_id)
                self.deadlines.sessions.schedule(key, session_ms)
                timeout_ms = member.rebalance_timeout_ms
                self.deadlines.update_rebalance(key, member, timeout_ms, now)

    def on_shard_unloaded(self, shard: GroupShard) -> None:
        """Cancel the deadlines of groups that are no longer served here."""
        for group in shard.state.of_type(StreamsGroup):
            self.deadlines.initial_delays.cancel(GroupKey(group.partition, group.group_id))
            for member_id in group.members:
                self.deadlines.cancel_all(group.key_of(member_id))

    def _removal(
        self,
        group: StreamsGroup,
        member: StreamsMember,
        now: Now,
        step: Step = no_step,  # noqa: ARG002 # only its replay may be long
    ) -> Outcome[DraftResult[None]]:
        return remove_member(group, member, self.deadlines, now, None)

    def _end_initial_delay(self, key: GroupKey, now: Now) -> int | None:
        """Assign the tasks of a group whose initial rebalance delay has passed.

        If its topology is not configured yet, the next heartbeat of a member does both. Returns
        when to try again, in timer time, if the targets could not be written.
        """
        decide = partial(self._decide_first, key)
        try:
            shard = self._shards.at(key.partition)
            pending = self._decisions.decide(shard, key.group_id, decide, now)
        except ApiError as error:
            _log_failure(key, error)
            return None if error.code is ErrorCode.UNKNOWN_SERVER_ERROR else now.timer_ms + RETRY_MS
        if pending is not None:
            self._decisions.keep(_logged(key, pending))
        return None

    def _decide_first(
        self, key: GroupKey, shard: GroupShard, now: Now, step: Step
    ) -> Outcome[DraftResult[None]]:
        """Decide about the first targets of a group, if there are none."""
        group = shard.state.find_streams(key.group_id)
        if group is None or group.is_empty or group.configured is None:
            return Outcome(reply=DraftResult(key.group_id, None))
        draft = StreamsDraft(group, now, step)
        if group.assignment_epoch < group.epoch:
            self._rebalance.compute_targets(draft, group.members, group.configured)
        return draft.outcome(None)


async def _logged(key: GroupKey, pending: Awaitable[None]) -> None:
    """Wait for the first tasks of a group. If there are none, its next heartbeat assigns them."""
    try:
        await pending
    except ApiError as error:
        _log_failure(key, error)


def _log_failure(key: GroupKey, error: ApiError) -> None:
    logger.warning("group %s: the first tasks could not be assigned: %s", key.group_id, error)


def _refusal(error: ApiError) -> HeartbeatReply:
    response = StreamsGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
    return HeartbeatReply(response, {})
