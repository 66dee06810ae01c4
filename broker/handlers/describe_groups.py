"""DescribeGroups (key 15, v0-6).

Describes classic groups with their members. A group that does not exist has the state Dead.
v3 can ask for the authorized operations (KIP-430) · v4 adds static members (KIP-345) · v6 adds
GROUP_ID_NOT_FOUND, with a message (KIP-1043)."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import NOT_REQUESTED, AclOperation, ResourceType
from odradek.coordinator.classic_groups.group import ClassicState
from odradek.coordinator.classic_groups.protocols import metadata_of
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.describe_groups import (
    DescribeGroupsGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

FIRST_VERSION_WITH_NOT_FOUND = 6


def handle(context: RequestContext, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[describe(context, request, group_id) for group_id in context.sliced(request.groups)]
    )


def describe(
    context: RequestContext, request: DescribeGroupsRequest, group_id: str
) -> DescribeGroupsGroup:
    try:
        context.check_group(AclOperation.DESCRIBE, group_id)
        group = context.broker.coordinators.groups.admin.classic_group(group_id)
    except ApiError as error:
        return group_with_error(context, request, group_id, error)
    # Only in a stable group do all members use the same protocol.
    stable = group.state is ClassicState.STABLE
    return DescribeGroupsGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[
            member.as_described(
                metadata_of(member.protocols, group.protocol_name) if stable else b""
            )
            for member in group.members.values()  # in one turn: the group may change after it
        ],
        authorized_operations=authorized_operations(context, request, group_id),
    )


def authorized_operations(
    context: RequestContext, request: DescribeGroupsRequest, group_id: str
) -> int:
    if not request.include_authorized_operations:
        return NOT_REQUESTED
    return context.authorized_operations(ResourceType.GROUP, group_id)


def group_with_error(
    context: RequestContext, request: DescribeGroupsRequest, group_id: str, error: ApiError
) -> DescribeGroupsGroup:
    not_found = error.code is ErrorCode.GROUP_ID_NOT_FOUND
    knows_error = context.api_version >= FIRST_VERSION_WITH_NOT_FOUND
    code = ErrorCode.NONE if not_found and not knows_error else error.code
    return DescribeGroupsGroup(
        error_code=code,
        error_message=error.message if not_found and knows_error else None,
        group_id=group_id,
        group_state=ClassicState.DEAD.value if not_found else "",
        protocol_type="",
        protocol_data="",
        members=[],
        authorized_operations=authorized_operations(context, request, group_id)
        if code is ErrorCode.NONE
        else NOT_REQUESTED,
    )
