"""OffsetForLeaderEpoch (key 23, v2-4).

Returns the end offset of a leader epoch in the log. A consumer whose position is beyond it knows
that the log was truncated (KIP-320). For an epoch that the log does not know, the epoch and the end
offset in the response are -1."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderPartitionResult,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)


def handle(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    is_follower = context.authorize_cluster(AclOperation.CLUSTER_ACTION, is_logged=False)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=ends_of_epochs(context, topic, is_authorized=is_follower),
            )
            for topic in context.sliced(request.topics)
        ]
    )


def ends_of_epochs(
    context: RequestContext, topic: OffsetForLeaderTopic, *, is_authorized: bool
) -> list[OffsetForLeaderPartitionResult]:
    try:
        if not is_authorized:
            context.check_topic(AclOperation.DESCRIBE, topic.topic)
    except ApiError as error:
        return [
            partition_with_error(partition, error) for partition in context.sliced(topic.partitions)
        ]
    return [
        end_of_epoch(context, topic.topic, partition)
        for partition in context.sliced(topic.partitions)
    ]


def partition_with_error(
    wanted: OffsetForLeaderPartition, error: ApiError
) -> OffsetForLeaderPartitionResult:
    return OffsetForLeaderPartitionResult(partition=wanted.partition, error_code=error.code)


def end_of_epoch(
    context: RequestContext, topic: str, wanted: OffsetForLeaderPartition
) -> OffsetForLeaderPartitionResult:
    try:
        log = context.broker.log_manager.get(topic, wanted.partition)
        context.broker.check_leader_epoch(log, wanted.current_leader_epoch)
        epoch, end_offset = log.end_offset_for_epoch(wanted.leader_epoch)
    except ApiError as error:
        return partition_with_error(wanted, error)
    return OffsetForLeaderPartitionResult(
        partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset
    )
