"""WriteTxnMarkers (key 27, v1-2).

Writes markers that end transactions. Brokers of a cluster send it to each other. Administrators
send it to end a transaction that its coordinator has forgotten (`kafka-transactions --abort`).
v2 adds the transaction version, which decides whether the marker has a newer epoch (KIP-1228)."""

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


def handle(context: RequestContext, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    if not context.authorize_cluster(
        AclOperation.ALTER, is_logged=False
    ) and not context.authorize_cluster(AclOperation.CLUSTER_ACTION):
        return refuse_all(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return WriteTxnMarkersResponse(
        markers=[write_marker(context, marker) for marker in context.sliced(request.markers)]
    )


def refuse_all(
    context: RequestContext, request: WriteTxnMarkersRequest, code: ErrorCode
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WriteTxnMarkersMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WriteTxnMarkersTopicResult(
                        name=topic.name,
                        partitions=[
                            WriteTxnMarkersPartitionResult(partition_index=index, error_code=code)
                            for index in context.sliced(topic.partition_indexes)
                        ],
                    )
                    for topic in context.sliced(marker.topics)
                ],
            )
            for marker in context.sliced(request.markers)
        ]
    )


def write_marker(
    context: RequestContext, marker: WriteTxnMarkersMarker
) -> WriteTxnMarkersMarkerResult:
    return WriteTxnMarkersMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WriteTxnMarkersTopicResult(
                name=topic.name,
                partitions=[
                    WriteTxnMarkersPartitionResult(
                        partition_index=index,
                        error_code=write_to_partition(context, marker, topic.name, index),
                    )
                    for index in context.sliced(topic.partition_indexes)
                ],
            )
            for topic in context.sliced(marker.topics)
        ],
    )


def write_to_partition(
    context: RequestContext, marker: WriteTxnMarkersMarker, topic: str, index: int
) -> ErrorCode:
    end = EndMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        is_commit=marker.transaction_result,
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )
    try:
        context.broker.coordinators.markers.append(
            end, TopicPartition(topic, index), context.now_ms
        )
    except ApiError as error:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in NOT_READY else error.code
    return ErrorCode.NONE
