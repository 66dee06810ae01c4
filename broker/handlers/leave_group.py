"""LeaveGroup (key 13, v0-5).

Removes members from a classic group at once, without waiting for their sessions to expire.
v3 takes several members, and can name a member by its instance id alone (KIP-345) · v5 adds a
reason (KIP-800)."""

from collections.abc import Awaitable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.leave_group import (
    LeaveGroupMemberIdentity,
    LeaveGroupRequest,
    LeaveGroupResponse,
)

FIRST_VERSION_WITH_SEVERAL_MEMBERS = 3


def handle(
    context: RequestContext, request: LeaveGroupRequest
) -> LeaveGroupResponse | Awaitable[LeaveGroupResponse]:
    if not context.authorize(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    leave = context.broker.coordinators.groups.members.leave_group
    if context.api_version >= FIRST_VERSION_WITH_SEVERAL_MEMBERS:
        return leave(request.group_id, request.members, context.step)
    response = leave(request.group_id, [LeaveGroupMemberIdentity(member_id=request.member_id)])
    if isinstance(response, LeaveGroupResponse):
        return of_one_member(response)
    return respond_later(response)


async def respond_later(pending: Awaitable[LeaveGroupResponse]) -> LeaveGroupResponse:
    return of_one_member(await pending)


def of_one_member(response: LeaveGroupResponse) -> LeaveGroupResponse:
    """The response of a version in which one member leaves."""
    if response.error_code != ErrorCode.NONE:
        return response
    return LeaveGroupResponse(error_code=response.members[0].error_code)
