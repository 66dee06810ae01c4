"""ConsumerGroupDescribe (key 69, v0-1).

Describes consumer groups (KIP-848): epochs, state and assignor, and for each member its
subscription, its current assignment and its target assignment.
v1 adds the protocol that each member uses (KIP-1099)."""

from collections.abc import Iterable

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.modern_group_describe import describe_groups
from odradek.coordinator.consumer_groups.description import described
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeGroup,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)


def handle(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    broker = context.broker
    default_assignor = broker.coordinators.group_configs.consumer.broker.assignors[0]
    return ConsumerGroupDescribeResponse(
        groups=describe_groups(
            context,
            request,
            is_served=broker.coordinators.serves_consumer_groups,
            describe=lambda group_id, operations: described(
                broker.coordinators.groups.admin.consumer_group(group_id),
                default_assignor,
                broker.find_topic_name,
                operations,
                context.step,
            ),
            topics_of=assigned_topics,
            refuse=group_with_error,
        )
    )


def assigned_topics(group: ConsumerGroupDescribeGroup) -> Iterable[str]:
    """The topics of the members' current and target assignments; some may repeat."""
    return (
        partitions.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for partitions in assignment.topic_partitions
    )


def group_with_error(
    group_id: str, code: ErrorCode, message: str | None
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
