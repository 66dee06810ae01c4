"""DeleteTopics (key 20, v1-6).

A topic is deleted when the response is sent; its files are deleted after file.delete.delay.ms. With
delete.topic.enable=false every deletion is refused.
v6 takes names or ids of topics."""

from collections import Counter
from collections.abc import Sequence

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.topic_deletion import TopicDeletionResult, TopicRef
from odradek.coordinator.runtime.steps import free
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicsResult,
)
from odradek.protocol.primitives import ZERO_UUID

FIRST_VERSION_WITH_DISABLED = 3


async def handle(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    wanted = [TopicRef(name) for name in context.sliced(request.topic_names)]
    wanted += [TopicRef(topic.name, topic.topic_id) for topic in context.sliced(request.topics)]
    results: list[TopicDeletionResult]
    try:
        check_enabled(context)
        unauthorized = unauthorized_topics(context, wanted)
        results = await context.broker.admin.topics.delete(
            [ref for ref in context.sliced(wanted) if ref not in unauthorized],
            permits=context.permits,
        )
        results += unauthorized.values()
    except ApiError as error:
        results = [
            TopicDeletionResult(
                name=ref.name, topic_id=ref.topic_id, error=error.with_traceback(None)
            )
            for ref in context.sliced(wanted)
        ]
    answers = [answer(result) for result in context.sliced(results)]
    free(context.step, wanted, results)
    return DeleteTopicsResponse(responses=answers)


def check_enabled(context: RequestContext) -> None:
    if context.broker.config.delete_topic_enable:
        return
    if context.api_version < FIRST_VERSION_WITH_DISABLED:
        text = "This version of the request cannot say that deletion is disabled."
        raise ApiError(ErrorCode.INVALID_REQUEST, text)
    raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")


def unauthorized_topics(
    context: RequestContext, wanted: Sequence[TopicRef]
) -> dict[TopicRef, TopicDeletionResult]:
    """The references that the client is not authorized for, with their results.

    A name is shown for an id only to a client that may describe the topic. Repeated references and
    unknown ids are left out, because they get another error whether or not it is authorized.
    """
    if context.authorize_cluster(AclOperation.DELETE, is_logged=False):
        return {}
    results = {}
    topics = context.broker.metadata.topics
    for ref, times in context.sliced(iter(Counter(context.sliced(wanted)).items())):
        by_name = ref.name is not None
        topic = topics.by_id.get(ref.topic_id) if ref.name is None else topics.get(ref.name)
        name = topic.name if topic else ref.name
        if times > 1 or name is None or (by_name and ref.topic_id != ZERO_UUID):
            continue
        is_described = context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
        may_delete = context.authorize(AclOperation.DELETE, ResourceType.TOPIC, name)
        # Only a client that may describe a topic learns whether its name exists.
        if (by_name and not is_described) or (topic and not may_delete):
            results[ref] = TopicDeletionResult(
                name=name if by_name or is_described else None,
                topic_id=ref.topic_id,
                error=refusal(ResourceType.TOPIC),
            )
    return results


def answer(deleted: TopicDeletionResult) -> DeleteTopicsResult:
    error = deleted.error
    return DeleteTopicsResult(
        name=deleted.name,
        topic_id=deleted.topic_id,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
    )
