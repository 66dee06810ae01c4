"""WriteTxnMarkers (key 27, v1-2).

Writes markers that end transactions. Brokers of a cluster send it to each other. Administrators
send it to end a transaction that its coordinator has forgotten (`kafka-transactions --abort`).
v2 adds the transaction version, which decides whether the marker has a newer epoch (KIP-1228)."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from odradek.broker.disk.log_sync import Due
from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WriteTxnMarkersMarker,
    WriteTxnMarkersMarkerResult,
    WriteTxnMarkersPartitionResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    WriteTxnMarkersTopicResult,
)
from odradek.storage.append import EndMarker
from odradek.storage.topic_partition import TopicPartition

# The coordinator does not expect these of a group's partition. Kafka: handleWriteTxnMarkersRequest.
NOT_READY = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)

# Returns the error code of a partition of a marker.
CodeOf = Callable[[WriteTxnMarkersMarker, TopicPartition], int]


def handle(
    context: RequestContext, request: WriteTxnMarkersRequest
) -> WriteTxnMarkersResponse | Awaitable[WriteTxnMarkersResponse]:
    if not context.authorize_cluster(
        AclOperation.ALTER, is_logged=False
    ) and not context.authorize_cluster(AclOperation.CLUSTER_ACTION):
        return refuse_all(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if any(
        marker.producer_id < 0 or marker.producer_epoch < 0
        for marker in context.sliced(request.markers)
    ):
        return refuse_all(context, request, ErrorCode.UNKNOWN_SERVER_ERROR)  # as in Kafka
    response = respond(context, request, partial(write_to_partition, context))
    due = context.broker.log_syncs.take_due()
    return answer_when_synced(context, request, response, due) if due else response


def respond(
    context: RequestContext, request: WriteTxnMarkersRequest, code_of: CodeOf
) -> WriteTxnMarkersResponse:
    """Make the response of the codes of all partitions, which are asked for in order."""
    return WriteTxnMarkersResponse(
        markers=[
            WriteTxnMarkersMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WriteTxnMarkersTopicResult(
                        name=topic.name,
                        partitions=[
                            WriteTxnMarkersPartitionResult(
                                partition_index=index,
                                error_code=code_of(marker, TopicPartition(topic.name, index)),
                            )
                            for index in context.sliced(topic.partition_indexes)
                        ],
                    )
                    for topic in context.sliced(marker.topics)
                ],
            )
            for marker in context.sliced(request.markers)
        ]
    )


def refuse_all(
    context: RequestContext, request: WriteTxnMarkersRequest, code: ErrorCode
) -> WriteTxnMarkersResponse:
    return respond(context, request, lambda _marker, _where: code)


async def answer_when_synced(
    context: RequestContext,
    request: WriteTxnMarkersRequest,
    response: WriteTxnMarkersResponse,
    due: Due,
) -> WriteTxnMarkersResponse:
    """Return the response after the fsyncs, with an error for each partition whose fsync failed."""
    await asyncio.wait(due.values())
    lost = {log.key for log, sync in due.items() if sync.exception() is not None}
    if not lost:
        return response
    codes = (
        partition.error_code
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    )

    def code_of(_marker: WriteTxnMarkersMarker, where: TopicPartition) -> int:
        code = next(codes)
        return ErrorCode.KAFKA_STORAGE_ERROR if code == ErrorCode.NONE and where in lost else code

    return respond(context, request, code_of)


def write_to_partition(
    context: RequestContext, marker: WriteTxnMarkersMarker, where: TopicPartition
) -> ErrorCode:
    end = EndMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )
    try:
        context.broker.coordinators.markers.append(end, where, context.now_ms)
    except ApiError as error:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in NOT_READY else error.code
    return ErrorCode.NONE
