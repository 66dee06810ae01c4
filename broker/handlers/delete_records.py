"""DeleteRecords (key 21, v0-2).

No reader sees the records before an offset (-1: the high watermark) once the response is sent. The
next retention check deletes whole segments of them. After a restart the new log start offset is
read from log-start-offset-checkpoint, which is written at a clean stop and every
log.flush.start.offset.checkpoint.interval.ms: if the broker is killed before that, the records are
back, as in Kafka. Internal topics and topics that are only compacted are refused. The timeout is
not used, because there are no followers to wait for."""

from collections.abc import Mapping

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from odradek.storage.topic_names import is_internal

HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


def handle(context: RequestContext, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    wanted: dict[str, dict[int, int]] = {}
    for topic in context.sliced(request.topics):
        for partition in context.sliced(topic.partitions):
            # A partition that occurs twice is answered once, with the last offset.
            wanted.setdefault(topic.name, {})[partition.partition_index] = partition.offset
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=delete_in_topic(context, name, offsets))
            for name, offsets in context.sliced(iter(wanted.items()))
        ]
    )


def delete_in_topic(
    context: RequestContext, topic: str, offsets: Mapping[int, int]
) -> list[DeleteRecordsPartitionResult]:
    try:
        context.check_topic(AclOperation.DELETE, topic)
    except ApiError as error:
        return [partition_with_error(index, error) for index in context.sliced(offsets)]
    return [
        delete_before(context, topic, index, offset)
        for index, offset in context.sliced(iter(offsets.items()))
    ]


def partition_with_error(index: int, error: ApiError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=error.code
    )


def delete_before(
    context: RequestContext, topic: str, index: int, offset: int
) -> DeleteRecordsPartitionResult:
    try:
        low_watermark = raise_log_start(context, topic, index, offset)
    except ApiError as error:
        return partition_with_error(index, error)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)


def raise_log_start(context: RequestContext, topic: str, index: int, offset: int) -> int:
    """Raise the log start offset, never lower it. Returns the new one. Raises ApiError."""
    log = context.broker.log_manager.get(topic, index)
    if is_internal(topic):
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot delete records of internal topic {topic}"
        )
    if log.config.compact and not log.config.delete:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"Records of partition {log.name} can not be deleted due to the configured policy",
        )
    wanted = log.high_watermark if offset == HIGH_WATERMARK else offset
    if wanted < 0:
        raise ApiError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"The offset {wanted} for partition {log.name} is not valid",
        )
    log.increment_log_start_offset(wanted)
    return log.log_start_offset
