"""StreamsGroupDescribe (key 89, v0-1).

Describes streams groups (KIP-1071): epochs, state and topology, and for each member what it has
reported, its current tasks and its target tasks.
v1 adds the assignor, and a readable topology (KIP-1331), which is not kept here."""

from collections.abc import Iterator

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.modern_group_describe import describe_groups
from odradek.coordinator.streams_groups.description import described
from odradek.protocol.errors import ErrorCode
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
    broker = context.broker
    return StreamsGroupDescribeResponse(
        groups=describe_groups(
            context,
            request,
            is_served=broker.coordinators.serves_streams_groups,
            describe=lambda group_id, operations: described(
                broker.coordinators.groups.admin.streams_group(group_id),
                operations,
                context.step,
                wants_readable_topology=request.include_topology_description,
            ),
            topics_of=topics_of,
            topic_refused_text=TOPIC_REFUSED_TEXT,
            refuse=group_with_error,
        )
    )


def topics_of(group: StreamsGroupDescribeGroup) -> Iterator[str]:
    """The topics of the topology; some may repeat."""
    subtopologies = None if group.topology is None else group.topology.subtopologies
    for subtopology in subtopologies or ():
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        yield from (topic.name for topic in subtopology.repartition_source_topics)
        yield from (topic.name for topic in subtopology.state_changelog_topics)


def group_with_error(
    group_id: str, code: ErrorCode, message: str | None
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
