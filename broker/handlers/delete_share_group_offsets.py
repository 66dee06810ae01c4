"""DeleteShareGroupOffsets (key 92, v0).

Deletes what a share group without members knows about topics (KIP-932). A group that reads them
again begins as a new one does."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.share_requests import check_enabled
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from odradek.protocol.primitives import ZERO_UUID


def handle(
    context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    check_enabled(context)
    context.check_group(AclOperation.DELETE, request.group_id)
    return delete(context, request)


def delete(
    context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    refusals: list[DeleteShareGroupOffsetsResponseTopic] = []
    allowed: list[DeleteShareGroupOffsetsRequestTopic] = []
    for topic in context.sliced(request.topics):
        if context.authorize(AclOperation.READ, ResourceType.TOPIC, topic.topic_name):
            allowed.append(topic)
        else:
            error = refusal(ResourceType.TOPIC)
            refusals.append(
                DeleteShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name,
                    topic_id=ZERO_UUID,
                    error_code=error.code,
                    error_message=error.message,
                )
            )
    if not request.group_id:
        raise ApiError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    deleted = context.broker.coordinators.groups.share_groups.delete_offsets(
        request.group_id, allowed, context.step
    )
    return DeleteShareGroupOffsetsResponse(responses=[*refusals, *deleted])
