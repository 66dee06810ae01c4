"""The topics and batches of a Produce request."""

from __future__ import annotations

from odradek.broker.requests.context import RequestContext
from odradek.protocol.batch_header import (
    CHECKED_POSITION,
    HEADER_BYTES,
    MAGIC_POSITION,
    MAGIC_V2,
    TRANSACTIONAL_BIT,
)
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceTopicData,
)
from odradek.protocol.schema import SplicedRecords
from odradek.storage.batch_validator import without_tail
from odradek.storage.topic_names import is_internal

ATTRIBUTES_LOW_BYTE = CHECKED_POSITION + 1
FIRST_VERSION_WITH_ZSTD = 7
FIRST_VERSION_BY_ID = 13
ADMIN_CLIENT_ID = "__admin_client"


def is_closed(context: RequestContext, topic: str) -> bool:
    """Whether a topic is internal, and the client may not write to it. Kafka's own clients may."""
    return is_internal(topic) and context.client_id != ADMIN_CLIENT_ID


def topic_name(context: RequestContext, topic: ProduceTopicData) -> str:
    """The topic's name, which newer clients do not send. Raises UNKNOWN_TOPIC_ID."""
    if context.api_version >= FIRST_VERSION_BY_ID:
        return context.broker.topic_name(topic.topic_id)
    return topic.name


def batch_of(partition: ProducePartitionData) -> memoryview | bytes:
    """The batch, or the message set, without what follows a batch. Raises ApiError."""
    if partition.records is None or isinstance(partition.records, SplicedRecords):
        raise ApiError(ErrorCode.INVALID_RECORD, "there is no record batch in the request")
    return without_tail(partition.records)


def is_transactional(partition: ProducePartitionData) -> bool:
    """Whether the batch is of a transaction, by its header. It may be no valid batch."""
    records = partition.records
    if records is None or isinstance(records, SplicedRecords) or len(records) < HEADER_BYTES:
        return False
    is_batch = records[MAGIC_POSITION] == MAGIC_V2
    return is_batch and bool(records[ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_BIT)


def has_transactional_batch(context: RequestContext, request: ProduceRequest) -> bool:
    """Whether a batch of the request is of a transaction."""
    for topic in context.sliced(request.topic_data):
        for partition in context.sliced(topic.partition_data):
            if is_transactional(partition):
                return True
    return False


def owned(context: RequestContext, request: ProduceRequest) -> ProduceRequest:
    """The request with a copy of its records, which are in the receive buffer."""
    return ProduceRequest(
        transactional_id=request.transactional_id,
        acks=request.acks,
        timeout_ms=request.timeout_ms,
        topic_data=[
            ProduceTopicData(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_data=[
                    ProducePartitionData(index=each.index, records=bytes(batch_of(each)))
                    if isinstance(each.records, memoryview)
                    else each
                    for each in context.sliced(topic.partition_data)
                ],
            )
            for topic in context.sliced(request.topic_data)
        ],
    )
