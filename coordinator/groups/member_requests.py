"""Requests of group members: finds the group, and passes the request to the service of its type.

    request -> the group's shard -> the service of the group's type -> response

Members of classic and consumer groups send JoinGroup, SyncGroup, Heartbeat and LeaveGroup: a
consumer group may have members that use the classic protocol. A request runs through these steps
without an await. A reply that must wait for other members is parked as a future
(parked_replies.py). When its client disconnects, the future is cancelled. The group is not
notified: the member's session expires like that of any silent member.

Kafka: GroupCoordinatorService.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Sequence
from typing import NamedTuple

from odradek.coordinator.any_group.caller import Caller
from odradek.coordinator.any_group.group_settings import GroupSettings
from odradek.coordinator.classic_groups.group import ClassicGroup
from odradek.coordinator.classic_groups.join import JoinCall
from odradek.coordinator.classic_groups.sync import leave_result
from odradek.coordinator.consumer_groups.group import ConsumerGroup
from odradek.coordinator.runtime.parked_replies import Parked, ReleaseQueue
from odradek.coordinator.runtime.steps import Step, no_step, stepping
from odradek.coordinator.share_groups.group import ShareGroup
from odradek.coordinator.streams_groups.group import StreamsGroup
from odradek.coordinator.streams_groups.heartbeat import HeartbeatReply
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.protocol.messages.leave_group import (
    LeaveGroupMemberIdentity,
    LeaveGroupResponse,
)
from odradek.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from odradek.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

from .classic_group_service import ClassicGroupService
from .consumer_group_service import ConsumerGroupService, OtherTypeError
from .group_decisions import GroupDecisions
from .group_shards import GroupShard, GroupShards
from .share_group_service import ShareGroupService
from .streams_group_service import StreamsGroupService

logger = logging.getLogger("odradek.groups")

# A JoinGroup with more protocols is refused, because they are counted in one turn of the loop.
# Clients send one for each of their assignors.
MAX_PROTOCOLS = 100

# A JoinGroup response with one of these errors has an empty member id.
CODES_WITHOUT_MEMBER_ID = frozenset(
    {
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class MemberServices(NamedTuple):
    """The services of all types of group."""

    classic: ClassicGroupService
    consumer: ConsumerGroupService
    share: ShareGroupService
    streams: StreamsGroupService


class MemberRequests:
    """The requests of members, to groups of all types."""

    def __init__(
        self,
        settings: GroupSettings,
        *,
        shards: GroupShards,
        services: MemberServices,
        decisions: GroupDecisions,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._settings = settings
        self._shards = shards
        self._classic = services.classic
        self._consumer = services.consumer
        self._streams = services.streams
        self._share = services.share
        self._decisions = decisions
        self._alarm = decisions.alarm
        self._releases = ReleaseQueue(loop)
        self._clock = decisions.clock

    def join_group(
        self, request: JoinGroupRequest, caller: Caller
    ) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
        """Serve a JoinGroup.

        Returns an awaitable while the group waits for other members, or the decision takes long.
        """
        parked: Parked[JoinGroupResponse] = Parked(self._releases)
        now = self._clock()
        try:
            self._check_join(request)
            shard = self._shards.of(request.group_id)
            call = JoinCall.of(request, caller, parked)
            consumers = shard.state.find_consumer(request.group_id)
            if consumers is not None and not consumers.is_empty:
                response = self._consumer.join_classic(shard, call, now)
                self._alarm.set(now)
                return response
            if shard.state.refuses_consumers(request.group_id):
                parked(JoinGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
            else:
                self._classic.join(shard, call, now)
        except ApiError as error:
            member_id = "" if error.code in CODES_WITHOUT_MEMBER_ID else request.member_id
            parked(JoinGroupResponse(error_code=error.code, member_id=member_id))
        self._alarm.set(now)
        return parked.result()

    def _check_join(self, request: JoinGroupRequest) -> None:
        if not request.group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        lowest = self._settings.min_session_timeout_ms
        highest = self._settings.max_session_timeout_ms
        if not lowest <= request.session_timeout_ms <= highest:
            raise ApiError(
                ErrorCode.INVALID_SESSION_TIMEOUT,
                f"{request.session_timeout_ms} is not between {lowest} and {highest}",
            )
        if len(request.protocols) > MAX_PROTOCOLS:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"{len(request.protocols)} protocols are more than {MAX_PROTOCOLS}",
            )

    def sync_group(
        self, request: SyncGroupRequest
    ) -> SyncGroupResponse | Awaitable[SyncGroupResponse]:
        """Serve a SyncGroup.

        Returns an awaitable until the leader has sent the assignment, or if the decision takes
        long.
        """
        parked: Parked[SyncGroupResponse] = Parked(self._releases)
        now = self._clock()
        try:
            shard, group = self._group_of_member(request.group_id)
            if isinstance(group, ConsumerGroup):
                response = self._consumer.sync_classic(shard, request, now)
                self._alarm.set(now)
                return response
            self._classic.sync(shard, group, request, parked, now)
        except ApiError as error:
            parked(SyncGroupResponse(error_code=error.code))
        self._alarm.set(now)
        return parked.result()

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse:
        """Serve a Heartbeat. While the group is loading, every heartbeat succeeds, as in Kafka."""
        now = self._clock()
        try:
            _, group = self._group_of_member(request.group_id)
            if isinstance(group, ClassicGroup):
                code = self._classic.syncs.heartbeat(group, request, now)
            else:
                code = self._consumer.classic_members.heartbeat(group, request, now)
        except ApiError as error:
            code = error.code
            if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                code = ErrorCode.NONE
        self._alarm.set(now)
        return HeartbeatResponse(error_code=code)

    def leave_group(
        self, group_id: str, leaving: Sequence[LeaveGroupMemberIdentity], step: Step = no_step
    ) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
        """Serve a LeaveGroup: one error for all members, or a result for each.

        Returns an awaitable if the decision takes long.
        """
        response: LeaveGroupResponse | Awaitable[LeaveGroupResponse]
        try:
            shard, group = self._group_of_member(group_id)
            if isinstance(group, ConsumerGroup):
                response = self._consumer.leave(shard, group_id, leaving, self._clock())
                if not isinstance(response, LeaveGroupResponse):
                    response = self._left(response, group_id, leaving)
            else:
                response = self._classic.leave(shard, group, leaving, step)
        except ApiError as refusal:
            response = _refuse_leave(leaving, refusal.code, step)
        self._alarm.set(self._clock())  # it may have taken long
        return response

    async def _left(
        self,
        pending: Awaitable[LeaveGroupResponse],
        group_id: str,
        leaving: Sequence[LeaveGroupMemberIdentity],
    ) -> LeaveGroupResponse:
        try:
            return await pending
        except OtherTypeError:
            response = self.leave_group(group_id, leaving)
        return response if isinstance(response, LeaveGroupResponse) else await response

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, caller: Caller
    ) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
        """Serve a ConsumerGroupHeartbeat. Returns an awaitable if the decision takes long."""
        now = self._clock()
        response = self._consumer.heartbeat(request, caller, now)
        self._alarm.set(now)
        return response

    def streams_group_heartbeat(
        self, request: StreamsGroupHeartbeatRequest, caller: Caller
    ) -> HeartbeatReply | Awaitable[HeartbeatReply]:
        """Serve a StreamsGroupHeartbeat. Returns an awaitable if the decision takes long."""
        now = self._clock()
        reply = self._streams.heartbeat(request, caller, now)
        self._alarm.set(now)
        return reply

    def remove_members(
        self, group_id: str, member_ids: Iterable[str]
    ) -> asyncio.Future[LeaveGroupResponse] | None:
        """Remove members of a group of any type, as if their sessions had expired.

        A member whose removal cannot be written stays until its session does expire. Returns a
        future if the decision takes long; it continues if nobody waits for it.
        """
        now = self._clock()
        try:
            shard = self._shards.of(group_id)
            group = shard.state.groups.get(group_id)
            if isinstance(group, StreamsGroup):
                self._streams.remove(shard, group, member_ids, now)
            elif isinstance(group, ShareGroup):
                self._share.remove(shard, group, member_ids, now)
            else:
                leaving = [
                    LeaveGroupMemberIdentity(member_id=member_id) for member_id in member_ids
                ]
                response = self.leave_group(group_id, leaving)
                if not isinstance(response, LeaveGroupResponse):
                    return self._decisions.keep(response)
        except ApiError as error:
            logger.warning("group %s: members cannot be removed: %s", group_id, error)
        self._alarm.set(now)
        return None

    def share_group_heartbeat(
        self, request: ShareGroupHeartbeatRequest, caller: Caller
    ) -> ShareGroupHeartbeatResponse | Awaitable[ShareGroupHeartbeatResponse]:
        """Serve a ShareGroupHeartbeat. Returns an awaitable if the decision takes long."""
        now = self._clock()
        response = self._share.heartbeat(request, caller, now)
        self._alarm.set(now)
        return response

    def _group_of_member(self, group_id: str) -> tuple[GroupShard, ClassicGroup | ConsumerGroup]:
        """Find the group that a member names. Raises ApiError: UNKNOWN_MEMBER_ID if none exists."""
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        shard = self._shards.of(group_id)
        group = shard.state.groups.get(group_id)
        if not isinstance(group, (ClassicGroup, ConsumerGroup)):
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"there is no group {group_id}")
        return shard, group


def _refuse_leave(
    leaving: Sequence[LeaveGroupMemberIdentity], error: ErrorCode, step: Step
) -> LeaveGroupResponse:
    """Make the response of a refused LeaveGroup.

    When the group does not exist, each member gets UNKNOWN_MEMBER_ID; other errors are given once.
    """
    if error is not ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(error_code=error)
    return LeaveGroupResponse(
        members=[leave_result(identity, error) for identity in stepping(leaving, step)]
    )
