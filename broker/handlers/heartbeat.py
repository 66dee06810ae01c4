"""Heartbeat (key 12, v0-4).

Renews the session of a member of a classic group. The error REBALANCE_IN_PROGRESS tells the member
to rejoin.
v3 adds static members (KIP-345)."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    if not context.authorize(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    return context.broker.coordinators.groups.members.heartbeat(request)
