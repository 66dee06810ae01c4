"""Heartbeat (key 12, v0-4).

Keeps a member of a classic group alive; the answer is how it learns that the group rebalances.
v3 static members (KIP-345)."""

from odradek.broker.requests.context import RequestContext
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    return context.broker.groups.heartbeat(request)
