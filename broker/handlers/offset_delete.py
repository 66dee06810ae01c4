"""OffsetDelete (key 47, v0).

Deletes the committed offsets of a group in topics that it no longer subscribes to (KIP-496). The
whole request is refused for a group that does not exist, or whose members do not report their
subscriptions. Topics and partitions that do not exist have errors of their own."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.topics import Topic
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
    for wanted in request.topics:
        if not context.authorize(AclOperation.READ, ResourceType.TOPIC, wanted.name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refusals.append(refused(wanted.name, wanted.partitions, error))
            continue
        topic = context.broker.metadata.topics.get(wanted.name)
        missing = part(wanted, topic, exists=False)
        if missing or topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refusals.append(refused(wanted.name, missing, unknown))
        there = part(wanted, topic, exists=True)
        if there:
            known.append(OffsetDeleteRequestTopic(name=wanted.name, partitions=there))
    try:
        deleted = context.broker.groups.offsets.delete(request.group_id, known)
    except ApiError as error:
        return OffsetDeleteResponse(error_code=error.code)
    return OffsetDeleteResponse(topics=merged([*refusals, *deleted]) if refusals else deleted)


def part(
    wanted: OffsetDeleteRequestTopic, topic: Topic | None, *, exists: bool
) -> list[OffsetDeleteRequestPartition]:
    """The requested partitions that exist, or do not."""
    existing = topic.partitions if topic is not None else {}
    return [one for one in wanted.partitions if (one.partition_index in existing) is exists]


def refused(
    name: str, partitions: list[OffsetDeleteRequestPartition], error: ErrorCode
) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=error)
            for one in partitions
        ],
    )


def merged(answers: list[OffsetDeleteResponseTopic]) -> list[OffsetDeleteResponseTopic]:
    """One entry per topic: first the partitions that were refused, then the others."""
    by_name: dict[str, OffsetDeleteResponseTopic] = {}
    for topic in answers:
        known = by_name.setdefault(topic.name, topic)
        if known is not topic:
            known.partitions.extend(topic.partitions)
    return list(by_name.values())
