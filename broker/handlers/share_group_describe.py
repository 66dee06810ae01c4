"""ShareGroupDescribe (key 77, v1).

Describes share groups (KIP-932): epochs, state, and for each member its subscription and its
partitions."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import NOT_REQUESTED, AclOperation, ResourceType
from odradek.coordinator.assignors.simple import SimpleAssignor
from odradek.coordinator.share_groups.description import described
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.share_group_describe import (
    ShareGroupDescribeGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

# Kafka's text.
TOPIC_REFUSED_TEXT = (
    "The group has described topic(s) that the client is not authorized to describe."
)


def handle(
    context: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(
        groups=[describe(context, request, group_id) for group_id in request.group_ids]
    )


def describe(
    context: RequestContext, request: ShareGroupDescribeRequest, group_id: str
) -> ShareGroupDescribeGroup:
    if not context.broker.serves_share_groups:
        return refused(group_id, ErrorCode.UNSUPPORTED_VERSION)
    if not context.authorize(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        return refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return refused(group_id, ErrorCode.INVALID_GROUP_ID)
    try:
        group = context.broker.groups.admin.share_group(group_id)
    except ApiError as error:
        not_found = error.code is ErrorCode.GROUP_ID_NOT_FOUND
        return refused(group_id, error.code, error.message if not_found else None)
    operations = (
        context.authorized_operations(ResourceType.GROUP, group_id)
        if request.include_authorized_operations
        else NOT_REQUESTED
    )
    name_of = context.broker.find_topic_name
    description = described(group, SimpleAssignor.name, name_of, operations)
    named = {
        partitions.topic_name
        for member in description.members
        for partitions in member.assignment.topic_partitions
    }
    for name in sorted(named):
        if not context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            return refused(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC_REFUSED_TEXT)
    return description


def refused(group_id: str, code: ErrorCode, message: str | None = None) -> ShareGroupDescribeGroup:
    return ShareGroupDescribeGroup(
        error_code=code,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )
