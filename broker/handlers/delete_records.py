"""DeleteRecords (key 21, v0-2).

Records before an offset (-1: before the high watermark) are gone for every reader when the answer
leaves. Whole segments of them go at the next retention check; a restart knows of the new log start
by log-start-offset-checkpoint, which is written every log.flush.start.offset.checkpoint.interval.ms
and at a clean stop: a kill before that brings the records back, as in Kafka. Not for internal
topics, nor for topics that are only compacted. The timeout waits for followers: there are none."""

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
    for topic in request.topics:
        for one in topic.partitions:
            # What is named twice is answered once; the last offset counts.
            wanted.setdefault(topic.name, {})[one.partition_index] = one.offset
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=delete_in_topic(context, name, offsets))
            for name, offsets in wanted.items()
        ]
    )


def delete_in_topic(
    context: RequestContext, topic: str, offsets: Mapping[int, int]
) -> list[DeleteRecordsPartitionResult]:
    try:
        context.check_topic(AclOperation.DELETE, topic)
    except ApiError as error:
        return [refused(index, error) for index in offsets]
    return [delete_before(context, topic, index, offset) for index, offset in offsets.items()]


def refused(index: int, error: ApiError) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=error.code
    )


def delete_before(
    context: RequestContext, topic: str, index: int, offset: int
) -> DeleteRecordsPartitionResult:
    try:
        low_watermark = raise_log_start(context, topic, index, offset)
    except ApiError as error:
        return refused(index, error)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)


def raise_log_start(context: RequestContext, topic: str, index: int, offset: int) -> int:
    """The log start offset afterwards: the one it had, where that is larger."""
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
