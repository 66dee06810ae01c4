"""StreamsGroupDescribe (key 89, v0-1).

Describes streams groups (KIP-1071): epochs, state and topology, and for each member what it has
reported, its current tasks and its target tasks.
v1 adds the assignor, and a readable topology (KIP-1331), which is not kept here."""

from collections.abc import Iterator

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import NOT_REQUESTED, AclOperation, ResourceType
from odradek.coordinator.streams_groups.description import described
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.streams_group_describe import (
    StreamsGroupDescribeGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

# Kafka's text.
TOPIC_REFUSED_TEXT = (
    "The described group uses topics that the client is not authorized to describe."
)


def handle(
    context: RequestContext, request: StreamsGroupDescribeRequest
) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(
        groups=[describe(context, request, group_id) for group_id in request.group_ids]
    )


def describe(
    context: RequestContext, request: StreamsGroupDescribeRequest, group_id: str
) -> StreamsGroupDescribeGroup:
    if not context.broker.serves_streams_groups:
        return refused(group_id, ErrorCode.UNSUPPORTED_VERSION)
    if not context.authorize(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        return refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return refused(group_id, ErrorCode.INVALID_GROUP_ID)
    operations = (
        context.authorized_operations(ResourceType.GROUP, group_id)
        if request.include_authorized_operations
        else NOT_REQUESTED
    )
    try:
        group = context.broker.groups.admin.streams_group(group_id)
        description = described(
            group, operations, wants_readable_topology=request.include_topology_description
        )
    except ApiError as error:
        not_found = error.code is ErrorCode.GROUP_ID_NOT_FOUND
        return refused(group_id, error.code, error.message if not_found else None)
    for name in dict.fromkeys(topics_of(description)):
        if not context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            return refused(group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC_REFUSED_TEXT)
    return description


def topics_of(group: StreamsGroupDescribeGroup) -> Iterator[str]:
    """The topics of the topology; some may repeat."""
    subtopologies = None if group.topology is None else group.topology.subtopologies
    for subtopology in subtopologies or ():
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        yield from (topic.name for topic in subtopology.repartition_source_topics)
        yield from (topic.name for topic in subtopology.state_changelog_topics)


def refused(
    group_id: str, code: ErrorCode, message: str | None = None
) -> StreamsGroupDescribeGroup:
    return StreamsGroupDescribeGroup(
        error_code=code,
        error_message=message,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        members=[],
    )
