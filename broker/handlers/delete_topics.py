"""DeleteTopics (key 20, v1-6).

A topic is deleted when the response is sent; its files are deleted after file.delete.delay.ms. With
delete.topic.enable=false every deletion is refused.
v6 takes names or ids of topics."""

from collections import Counter
from collections.abc import Sequence

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.topic_deletion import TopicDeletionResult, TopicRef, resolve
from odradek.coordinator.runtime.steps import free
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicsResult,
)

FIRST_VERSION_WITH_DISABLED = 3
UNKNOWN_NAME = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def handle(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    wanted = [TopicRef(name) for name in context.sliced(request.topic_names)]
    wanted += [TopicRef(topic.name, topic.topic_id) for topic in context.sliced(request.topics)]
    results: list[TopicDeletionResult]
    try:
        check_enabled(context)
        refused = refused_topics(context, wanted)
        results = await context.broker.admin.topics.delete(
            [ref for ref in context.sliced(wanted) if ref not in refused],
            permits=context.permits,
        )
        results += refused.values()
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


def refused_topics(
    context: RequestContext, wanted: Sequence[TopicRef]
) -> dict[TopicRef, TopicDeletionResult]:
    """The references that the client is not authorized for or that name no topic, with results.

    A reference that names no topic now must not be looked up again later: the client may be
    authorized to describe a topic of that name, and not to delete it. A name is shown for an id
    only to a client that may describe the topic. References that are repeated are refused later,
    because a topic's id may not be among them if the topic is named.
    """
    if context.authorize_cluster(AclOperation.DELETE, is_logged=False):
        return {}
    results = {}
    for ref, times in context.sliced(iter(Counter(context.sliced(wanted)).items())):
        if times > 1:
            continue
        name, error = ref.name, None
        try:
            name = resolve(context.broker.metadata, ref, times).name
        except ApiError as unresolved:
            error = unresolved.with_traceback(None)
        if name is not None and (error is None or error.code is UNKNOWN_NAME):
            is_described = context.authorize(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
            may_delete = context.authorize(AclOperation.DELETE, ResourceType.TOPIC, name)
            # Only a client that may describe a topic learns whether its name exists.
            if (ref.name is not None and not is_described) or not (error or may_delete):
                error = refusal(ResourceType.TOPIC)
                name = name if is_described else ref.name
        if error is not None:
            results[ref] = TopicDeletionResult(name=name, topic_id=ref.topic_id, error=error)
    return results


def answer(deleted: TopicDeletionResult) -> DeleteTopicsResult:
    error = deleted.error
    return DeleteTopicsResult(
        name=deleted.name,
        topic_id=deleted.topic_id,
        error_code=ErrorCode.NONE if error is None else error.code,
        error_message=None if error is None else error.message,
    )
