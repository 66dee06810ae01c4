"""DescribeProducers (key 61, v0).

Lists the idempotent and transactional producers that a partition's log knows: the last sequence and
timestamp, and the first offset of an open transaction (KIP-664). A partition that a request names
more than once is described once: it may have very many producers, and a short request must not make
the broker list them again and again."""

from collections.abc import Iterable

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.describe_producers import (
    DescribeProducersPartitionResponse,
    DescribeProducersProducerState,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
)
from odradek.storage.producer_entry import ProducerEntry
from odradek.storage.topic_names import why_illegal


def handle(context: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    # The partition indexes by topic, each once and in the order of the request.
    wanted: dict[str, dict[int, None]] = {}
    for topic in context.sliced(request.topics):
        indexes = wanted.setdefault(topic.name, {})
        for index in context.sliced(topic.partition_indexes):
            indexes[index] = None
    return DescribeProducersResponse(
        topics=[
            DescribeProducersTopicResponse(
                name=name, partitions=describe_topic(context, name, indexes)
            )
            for name, indexes in context.sliced(iter(wanted.items()))
        ]
    )


def describe_topic(
    context: RequestContext, topic: str, indexes: Iterable[int]
) -> list[DescribeProducersPartitionResponse]:
    try:
        reason = why_illegal(topic)
        if reason is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        context.check_topic(AclOperation.READ, topic)
    except ApiError as error:
        return [partition_with_error(index, error) for index in context.sliced(indexes)]
    return [describe(context, topic, index) for index in context.sliced(indexes)]


def partition_with_error(index: int, error: ApiError) -> DescribeProducersPartitionResponse:
    return DescribeProducersPartitionResponse(
        partition_index=index,
        error_code=error.code,
        error_message=error.message,
        active_producers=[],
    )


def describe(context: RequestContext, topic: str, index: int) -> DescribeProducersPartitionResponse:
    try:
        log = context.broker.log_manager.get(topic, index)
        log.check_online()
    except ApiError as error:
        return partition_with_error(index, error)
    return DescribeProducersPartitionResponse(
        partition_index=index,
        active_producers=[
            state_of(entry) for entry in context.sliced(log.producers.producers.values())
        ],
    )


def state_of(entry: ProducerEntry) -> DescribeProducersProducerState:
    return DescribeProducersProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp_ms,
        coordinator_epoch=entry.coordinator_epoch,
        current_txn_start_offset=entry.txn_first_offset,
    )
