"""DeleteTopics (key 20, v1-6).

A topic is gone when the answer leaves; its files follow after file.delete.delay.ms. v6 names topics
by name or by id. With delete.topic.enable=false nothing is deleted."""

from collections.abc import Sequence

from odradek.broker.requests.context import RequestContext
from odradek.coordinator.metadata.topic_deletion import DeletedTopic, TopicRef
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicsResult,
)

FIRST_VERSION_WITH_DISABLED = 3


async def handle(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    wishes = [TopicRef(name) for name in request.topic_names]
    wishes += [TopicRef(topic.name, topic.topic_id) for topic in request.topics]
    results: Sequence[DeletedTopic]
    try:
        check_enabled(context)
        results = await context.broker.topic_admin.delete(wishes)
    except ApiError as error:
        results = [
            DeletedTopic(name=wish.name, topic_id=wish.topic_id, error=error) for wish in wishes
        ]
    return DeleteTopicsResponse(responses=[answer(deleted) for deleted in results])


def check_enabled(context: RequestContext) -> None:
    if context.broker.config.delete_topic_enable:
        return
    if context.api_version < FIRST_VERSION_WITH_DISABLED:
        text = "This version of the request cannot say that deletion is disabled."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")


def answer(deleted: DeletedTopic) -> DeleteTopicsResult:
    error = deleted.error
    return DeleteTopicsResult(
        name=deleted.name,
        topic_id=deleted.topic_id,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
    )
