"""ShareGroupDescribe (key 77, v1).

Describes share groups (KIP-932): epochs, state, and for each member its subscription and its
partitions."""

from collections.abc import Iterable

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.modern_group_describe import describe_groups
from odradek.coordinator.assignors.simple import SimpleAssignor
from odradek.coordinator.share_groups.description import described
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.share_group_describe import (
    ShareGroupDescribeGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)


def handle(
    context: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    broker = context.broker
    return ShareGroupDescribeResponse(
        groups=describe_groups(
            context,
            request,
            is_served=broker.coordinators.serves_share_groups,
            describe=lambda group_id, operations: described(
                broker.coordinators.groups.admin.share_group(group_id),
                SimpleAssignor.name,
                broker.find_topic_name,
                operations,
                context.step,
            ),
            topics_of=assigned_topics,
            refuse=group_with_error,
        )
    )


def assigned_topics(group: ShareGroupDescribeGroup) -> Iterable[str]:
    """The topics of the members' assignments; some may repeat."""
    return (
        partitions.topic_name
        for member in group.members
        for partitions in member.assignment.topic_partitions
    )


def group_with_error(
    group_id: str, code: ErrorCode, message: str | None
) -> ShareGroupDescribeGroup:
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
