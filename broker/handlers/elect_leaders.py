"""ElectLeaders (key 43, v0-2).

A partition's leader is this broker, or there is none. Partitions that can have a leader get it at
start, so an election rarely changes anything. A request without a list asks for all partitions; its
response has only those whose leader changed or could not be elected.
v1 adds unclean elections, and an error for the whole request."""

from collections.abc import Iterable, Mapping

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.elections import ElectionType
from odradek.coordinator.runtime.steps import free
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.elect_leaders import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopicResult,
)
from odradek.storage.topic_partition import TopicPartition


async def handle(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    try:
        context.check_cluster(AclOperation.ALTER)
        if request.topic_partitions == []:
            return ElectLeadersResponse()
        election, wanted = election_type(request), wanted_partitions(context, request)
        results = context.broker.controller.elect_leaders(
            election, wanted, context.now_ms, context.step
        )
    except ApiError as error:
        return response_with_error(context, request, error)
    await context.broker.metadata_log.sync()
    partitions_of: dict[str, list[int]] = {}
    answered: Iterable[tuple[str, list[int]]]
    if request.topic_partitions is None:
        partitions_of = {name: [] for name in context.sliced(context.broker.metadata.topics)}
        for name, index in context.sliced(iter(results)):
            partitions_of.setdefault(name, []).append(index)
        answered = iter(partitions_of.items())
    else:
        answered = ((topic.topic, topic.partitions) for topic in request.topic_partitions)
    topic_results = [topic_result(context, *item, results) for item in context.sliced(answered)]
    free(context.step, wanted or [], results, partitions_of)
    return ElectLeadersResponse(replica_election_results=topic_results)


def election_type(request: ElectLeadersRequest) -> ElectionType:
    try:
        return ElectionType(request.election_type)
    except ValueError:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"there is no election type {request.election_type}"
        ) from None


def wanted_partitions(
    context: RequestContext, request: ElectLeadersRequest
) -> list[TopicPartition] | None:
    topics = request.topic_partitions
    if topics is None:
        return None
    return [
        TopicPartition(topic.topic, index)
        for topic in context.sliced(topics)
        for index in context.sliced(topic.partitions)
    ]


def topic_result(
    context: RequestContext,
    name: str,
    indexes: Iterable[int],
    results: Mapping[TopicPartition, ApiError | None],
) -> ElectLeadersTopicResult:
    return ElectLeadersTopicResult(
        topic=name,
        partition_result=[
            partition_result(index, results[TopicPartition(name, index)])
            for index in context.sliced(indexes)
        ],
    )


def partition_result(index: int, error: ApiError | None) -> ElectLeadersPartitionResult:
    if error is None:
        return ElectLeadersPartitionResult(partition_id=index)
    return ElectLeadersPartitionResult(
        partition_id=index, error_code=error.code, error_message=error.message
    )


def response_with_error(
    context: RequestContext, request: ElectLeadersRequest, error: ApiError
) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        # v0 has it only in each partition.
        error_code=error.code if context.api_version >= 1 else ErrorCode.NONE,
        replica_election_results=[
            ElectLeadersTopicResult(
                topic=topic.topic,
                partition_result=[
                    partition_result(index, error) for index in context.sliced(topic.partitions)
                ],
            )
            for topic in context.sliced(request.topic_partitions or [])
        ],
    )
