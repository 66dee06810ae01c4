"""AlterShareGroupOffsets (key 91, v0).

Sets start offsets of a share group without members, which is created if it does not exist
(KIP-932). The new start counts from the next delivery on: all that was delivered is forgotten."""

from collections.abc import Awaitable
from functools import partial

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.internal_topic import respond_with_topic
from odradek.broker.requests.share_requests import check_enabled
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from odradek.protocol.primitives import ZERO_UUID


def handle(
    context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse | Awaitable[AlterShareGroupOffsetsResponse]:
    check_enabled(context)
    context.check_group(AclOperation.READ, request.group_id)
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    refusals: list[AlterShareGroupOffsetsResponseTopic] = []
    allowed: list[AlterShareGroupOffsetsRequestTopic] = []
    for topic in context.sliced(request.topics):
        name = topic.topic_name
        if not context.authorize(AclOperation.READ, ResourceType.TOPIC, name):
            refusals.append(topic_with_error(context, topic, refusal(ResourceType.TOPIC)))
        elif name not in context.broker.metadata.topics:
            missing = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
            refusals.append(topic_with_error(context, topic, missing))
        else:
            allowed.append(topic)
    work = partial(alter, refusals=refusals, allowed=allowed)
    if not allowed:
        return work(context, request)
    return respond_with_topic(
        context, context.broker.coordinators.share_states.shards, request, work
    )


def alter(
    context: RequestContext,
    request: AlterShareGroupOffsetsRequest,
    *,
    refusals: list[AlterShareGroupOffsetsResponseTopic],
    allowed: list[AlterShareGroupOffsetsRequestTopic],
) -> AlterShareGroupOffsetsResponse:
    altered = context.broker.coordinators.groups.share_groups.alter_offsets(
        request.group_id, allowed, context.step
    )
    return AlterShareGroupOffsetsResponse(responses=[*refusals, *altered])


def topic_with_error(
    context: RequestContext, topic: AlterShareGroupOffsetsRequestTopic, error: ApiError
) -> AlterShareGroupOffsetsResponseTopic:
    known = context.broker.metadata.topics.get(topic.topic_name)
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        topic_id=ZERO_UUID if known is None else known.id,
        partitions=[
            AlterShareGroupOffsetsResponsePartition(
                partition_index=partition.partition_index,
                error_code=error.code,
                error_message=error.message,
            )
            for partition in context.sliced(topic.partitions)
        ],
    )
