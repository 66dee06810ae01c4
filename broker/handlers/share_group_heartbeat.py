"""ShareGroupHeartbeat (key 76, v1).

With this request, a member of a share group joins, reports its subscription, gets its partitions,
and leaves (KIP-932). The response never waits for other members. Partitions that the group has not
read yet come with a later heartbeat, when their state is stored."""

from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.turns.seen import distinct
from odradek.coordinator.any_group.caller import Caller
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


def handle(
    context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse | Awaitable[ShareGroupHeartbeatResponse]:
    if not context.broker.coordinators.serves_share_groups:
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not context.authorize(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    for name in distinct(context.sliced(request.subscribed_topic_names or ())):
        if not context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            return ShareGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    caller = Caller(context.client_id or "", context.client_host, context.api_version)
    return context.broker.coordinators.groups.members.share_group_heartbeat(request, caller)
