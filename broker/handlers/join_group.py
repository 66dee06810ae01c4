"""JoinGroup (key 11, v0-9).

Makes the client a member of a classic group. The response waits until all members have joined.
v1 adds the rebalance timeout · from v4 on, a dynamic member first asks for its id (KIP-394) · v5
adds static members (KIP-345) · v7 adds the protocol type · v8 adds a reason (KIP-800) · v9 can tell
the leader to skip the assignment (KIP-814)."""

from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.any_group.caller import Caller
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from odradek.protocol.schema import replace

FIRST_VERSION_WITH_NULL_PROTOCOL = 7


def handle(
    context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    response = join(context, request)
    if context.api_version >= FIRST_VERSION_WITH_NULL_PROTOCOL:
        return response
    if isinstance(response, JoinGroupResponse):
        return without_null_protocol(response)
    return wait_and_respond(response)


def join(
    context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Awaitable[JoinGroupResponse]:
    if not context.authorize(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return JoinGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    caller = Caller(
        context.client_id or "", context.client_host, context.api_version, context.topic_filter()
    )
    return context.broker.coordinators.groups.members.join_group(request, caller)


async def wait_and_respond(parked: Awaitable[JoinGroupResponse]) -> JoinGroupResponse:
    return without_null_protocol(await parked)


def without_null_protocol(response: JoinGroupResponse) -> JoinGroupResponse:
    """The response with an empty protocol name instead of null, for old clients."""
    if response.protocol_name is not None:
        return response
    return replace(response, protocol_name="")
