"""AlterPartitionReassignments (key 45, v0-1).

Every replica is on this broker. A reassignment to this broker is accepted and changes nothing;
others are refused. A cancellation is refused, because no reassignment is ever in progress.
v1 can forbid a change of the replication factor (KIP-860)."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.reassignments import check_reassignment
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsPartition,
    AlterPartitionReassignmentsPartitionResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionReassignmentsTopicResponse,
)


def handle(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    try:
        context.check_cluster(AclOperation.ALTER)
    except ApiError as error:
        return response_with_error(context, request, error)
    if not request.topics:  # as in Kafka, whose message is then empty, and not null
        return AlterPartitionReassignmentsResponse(error_message="")
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            AlterPartitionReassignmentsTopicResponse(
                name=topic.name,
                partitions=[
                    reassign(context, request, topic.name, partition)
                    for partition in context.sliced(topic.partitions)
                ],
            )
            for topic in context.sliced(request.topics)
        ],
    )


def response_with_error(
    context: RequestContext, request: AlterPartitionReassignmentsRequest, error: ApiError
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        error_code=error.code,
        error_message=error.message,
        responses=[
            AlterPartitionReassignmentsTopicResponse(
                name=topic.name,
                partitions=[
                    partition_with_error(partition, error)
                    for partition in context.sliced(topic.partitions)
                ],
            )
            for topic in context.sliced(request.topics)
        ],
    )


def reassign(
    context: RequestContext,
    request: AlterPartitionReassignmentsRequest,
    topic: str,
    wanted: AlterPartitionReassignmentsPartition,
) -> AlterPartitionReassignmentsPartitionResponse:
    index = wanted.partition_index
    try:
        check_reassignment(
            context.broker.metadata,
            topic,
            index,
            wanted.replicas,
            allow_replication_factor_change=request.allow_replication_factor_change,
            step=context.step,
        )
    except ApiError as error:
        return partition_with_error(wanted, error)
    return AlterPartitionReassignmentsPartitionResponse(partition_index=index)


def partition_with_error(
    wanted: AlterPartitionReassignmentsPartition, error: ApiError
) -> AlterPartitionReassignmentsPartitionResponse:
    return AlterPartitionReassignmentsPartitionResponse(
        partition_index=wanted.partition_index,
        error_code=error.code,
        error_message=error.message,
    )
