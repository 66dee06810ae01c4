"""ConsumerGroupDescribe (key 69, v0-1).

Describes consumer groups (KIP-848): epochs, state and assignor, and for each member its
subscription, its current assignment and its target assignment.
v1 adds the protocol that each member uses (KIP-1099)."""

from collections.abc import Iterable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import NOT_REQUESTED, AclOperation, ResourceType
from odradek.coordinator.consumer_groups.description import described
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeGroup,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

# Kafka's text.
TOPIC_REFUSED_TEXT = (
    "The group has described topic(s) that the client is not authorized to describe."
)


def handle(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(
        groups=[describe(context, request, group_id) for group_id in request.group_ids]
    )


def describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest, group_id: str
) -> ConsumerGroupDescribeGroup:
    if not context.broker.serves_consumer_groups:
        return refused(group_id, ErrorCode.UNSUPPORTED_VERSION)
    if not context.authorize(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        return refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return refused(group_id, ErrorCode.INVALID_GROUP_ID)
    try:
        group = context.broker.groups.admin.consumer_group(group_id)
    except ApiError as error:
        not_found = error.code is ErrorCode.GROUP_ID_NOT_FOUND
        return refused(group_id, error.code, error.message if not_found else None)
    default_assignor = context.broker.group_configs.consumer.broker.assignors[0]
    operations = (
        context.authorized_operations(ResourceType.GROUP, group_id)
        if request.include_authorized_operations
        else NOT_REQUESTED
    )
    description = described(group, default_assignor, context.broker.find_topic_name, operations)
    for name in assigned_topics(description):
        if not context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            return refused(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC_REFUSED_TEXT)
    return description


def assigned_topics(group: ConsumerGroupDescribeGroup) -> Iterable[str]:
    """The topics of the members' current and target assignments, each once."""
    return dict.fromkeys(
        partitions.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for partitions in assignment.topic_partitions
    )


def refused(
    group_id: str, code: ErrorCode, message: str | None = None
) -> ConsumerGroupDescribeGroup:
    return ConsumerGroupDescribeGroup(
        error_code=code,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )
