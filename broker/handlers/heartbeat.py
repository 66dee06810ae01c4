"""Heartbeat (key 12, v0-4).

Keeps a member of a classic group alive; the answer is how it learns that the group rebalances.
v3 static members (KIP-345)."""

from ...protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..requests.context import RequestContext


def handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    return context.broker.groups.heartbeat(request)
