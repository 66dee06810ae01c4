"""OffsetDelete (key 47, v0).

Deletes the committed offsets of a group in topics that it no longer subscribes to (KIP-496). The
whole request is refused if the group does not exist, or if its members do not report their
subscriptions. Each topic or partition that does not exist has its own error."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    if not context.authorize(AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    known: list[OffsetDeleteRequestTopic] = []
    refusals: list[OffsetDeleteResponseTopic] = []
    for wanted in context.sliced(request.topics):
        name, partitions = wanted.name, wanted.partitions
        if not context.authorize(AclOperation.READ, ResourceType.TOPIC, name):
            refusals.append(
                topic_with_error(context, name, partitions, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            )
            continue
        topic = context.broker.metadata.topics.get(name)
        indexes = topic.partitions if topic is not None else ()
        missing = [
            item for item in context.sliced(partitions) if item.partition_index not in indexes
        ]
        if missing or topic is None:
            refusals.append(
                topic_with_error(context, name, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            )
        existing = [item for item in context.sliced(partitions) if item.partition_index in indexes]
        if existing:
            known.append(OffsetDeleteRequestTopic(name=name, partitions=existing))
    try:
        deleted = context.broker.coordinators.groups.offsets.delete(
            request.group_id, known, context.step
        )
    except ApiError as error:
        return OffsetDeleteResponse(error_code=error.code)
    return OffsetDeleteResponse(
        topics=merged(context, [*refusals, *deleted]) if refusals else deleted
    )


def topic_with_error(
    context: RequestContext,
    name: str,
    partitions: list[OffsetDeleteRequestPartition],
    error: ErrorCode,
) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=item.partition_index, error_code=error)
            for item in context.sliced(partitions)
        ],
    )


def merged(
    context: RequestContext, results: list[OffsetDeleteResponseTopic]
) -> list[OffsetDeleteResponseTopic]:
    """One entry per topic: first the partitions that were refused, then the others."""
    by_name: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in context.sliced(results):
        known = by_name.setdefault(topic.name, topic)
        if known is not topic:
            known.partitions.extend(topic.partitions)
    return list(by_name.values())
