"""What Produce answers for a batch that was appended or refused."""

from __future__ import annotations

from odradek.broker.requests.answer import RefusedRequestError
from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.named_leaders import note_leader_error
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.produce import (
    ProducePartitionResponse,
    ProduceRecordError,
    ProduceTopicResponse,
)
from odradek.storage.record_walk import RecordsRefusedError

UNKNOWN_OFFSET = -1
# Errors of a log that are sent without the log start offset.
# Kafka: ReplicaManager.appendToLocalLog.
WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


def partition_with_error(
    context: RequestContext, index: int, error: ApiError, log_start_offset: int = UNKNOWN_OFFSET
) -> ProducePartitionResponse:
    """The answer for a refused batch; `log_start_offset` is that of the log."""
    note_leader_error(context, error.code)
    singles = error.record_errors if isinstance(error, RecordsRefusedError) else ()
    return ProducePartitionResponse(
        index=index,
        error_code=error.code,
        base_offset=UNKNOWN_OFFSET,
        log_start_offset=UNKNOWN_OFFSET if error.code in WITHOUT_LOG_START else log_start_offset,
        record_errors=[
            ProduceRecordError(batch_index=index, batch_index_error_message=text)
            for index, text in singles
        ],
        error_message=error.message,
    )


def count_refusal(context: RequestContext, topic: str) -> None:
    """Count a refused batch, if metrics are kept. The topic may not exist."""
    traffic = context.broker.traffic
    if traffic is not None:
        exists = topic in context.broker.metadata.topics
        counts = traffic.topics[topic] if exists else traffic.without_topic
        counts.failed_produce += 1


def close_on_error(topics: list[ProduceTopicResponse]) -> None:
    """Close the connection if a batch was refused: with acks=0 nothing else can report it.

    Raises RefusedRequestError.
    """
    for topic in topics:
        for partition in topic.partition_responses:
            if partition.error_code != ErrorCode.NONE:
                code = ErrorCode(partition.error_code)
                raise RefusedRequestError(
                    f"Produce with acks=0 to {topic.name}-{partition.index} failed:"
                    f" {code.name}: {partition.error_message}"
                )
