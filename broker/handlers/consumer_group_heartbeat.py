"""ConsumerGroupHeartbeat (key 68, v0-1).

With this request, a member of a consumer group joins, reports its partitions, gets its assignment,
and leaves (KIP-848). The response never waits for other members.
v1 adds subscriptions by a regular expression, and requires that the client generates its member
id."""

from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.turns.seen import distinct
from odradek.coordinator.any_group.caller import Caller
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


def handle(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
    if not context.broker.coordinators.serves_consumer_groups:
        return ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            error_message="the consumer protocol is not enabled: see group.version and "
            "group.coordinator.rebalance.protocols",
        )
    if not context.authorize(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    for name in distinct(context.sliced(request.subscribed_topic_names or ())):
        if not context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    caller = Caller(
        context.client_id or "", context.client_host, context.api_version, context.topic_filter()
    )
    return context.broker.coordinators.groups.members.consumer_group_heartbeat(request, caller)
