"""OffsetForLeaderEpoch (key 23, v2-4).

Where a leader epoch ends in our log: a consumer that has read further knows that the log was cut
(KIP-320). -1, -1 for an epoch that the log does not know."""

from odradek.broker.requests.context import RequestContext
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderPartitionResult,
    OffsetForLeaderTopicResult,
)


def handle(
    context: RequestContext, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    end_of_epoch(context, topic.topic, partition) for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def end_of_epoch(
    context: RequestContext, topic: str, wanted: OffsetForLeaderPartition
) -> OffsetForLeaderPartitionResult:
    try:
        log = context.broker.log_manager.get(topic, wanted.partition)
        context.broker.check_leader_epoch(log, wanted.current_leader_epoch)
        epoch, end_offset = log.end_offset_for_epoch(wanted.leader_epoch)
    except ApiError as error:
        return OffsetForLeaderPartitionResult(partition=wanted.partition, error_code=error.code)
    return OffsetForLeaderPartitionResult(
        partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset
    )
