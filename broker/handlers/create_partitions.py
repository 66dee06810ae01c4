"""CreatePartitions (key 37, v0-3).

The new partitions and their logs exist when the response is sent. As in Kafka, topics that occur
twice come first in the response, then those that the client may not alter, then the others in the
order of the request."""

from collections import Counter

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.authorizer import refusal
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.topic_creation import MorePartitions
from odradek.coordinator.runtime.steps import free
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(
    context: RequestContext, request: CreatePartitionsRequest
) -> CreatePartitionsResponse:
    times = Counter(topic.name for topic in context.sliced(request.topics))
    # A name that occurs twice gets another error, whether or not the client may alter the topic.
    # The controller finds that error.
    results: dict[str, ApiError | None] = {  # None: the topic has the new partitions
        name: refusal(ResourceType.TOPIC)
        for name in context.sliced(times)
        if times[name] == 1 and not context.authorize(AclOperation.ALTER, ResourceType.TOPIC, name)
    }
    additions = [
        to_more_partitions(context, topic)
        for topic in context.sliced(request.topics)
        if topic.name not in results
    ]
    of_additions: dict[str, ApiError | None]
    try:
        of_additions = await context.broker.admin.topics.create_partitions(
            additions, validate_only=request.validate_only, permits=context.permits
        )
    except ApiError as error:
        of_additions = {item.name: error.with_traceback(None) for item in context.sliced(additions)}
    results.update(context.sliced(iter(of_additions.items())))
    answers = [
        answer(name, result)
        for is_repeated in (True, False)
        for name, result in context.sliced(iter(results.items()))
        if (times[name] > 1) is is_repeated
    ]
    free(context.step, additions, of_additions, results, times)
    return CreatePartitionsResponse(results=answers)


def to_more_partitions(context: RequestContext, topic: CreatePartitionsTopic) -> MorePartitions:
    """The topic's addition for the controller."""
    assignments = None
    if topic.assignments is not None:
        assignments = [item.broker_ids for item in context.sliced(topic.assignments)]
    return MorePartitions(name=topic.name, count=topic.count, assignments=assignments)


def answer(name: str, error: ApiError | None) -> CreatePartitionsTopicResult:
    if error is None:
        return CreatePartitionsTopicResult(name=name, error_code=ErrorCode.NONE)
    return CreatePartitionsTopicResult(
        name=name, error_code=error.code, error_message=error.message
    )
