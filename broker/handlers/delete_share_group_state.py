"""DeleteShareGroupState (key 86, v0).

Deletes what a share group knows about partitions (KIP-932). It is no error if there is nothing."""

from functools import partial

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.share_state_requests import results_of
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.messages.delete_share_group_state import (
    DeleteShareGroupStatePartition,
    DeleteShareGroupStatePartitionResult,
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteShareGroupStateTopicResult,
)


def handle(
    context: RequestContext, request: DeleteShareGroupStateRequest
) -> DeleteShareGroupStateResponse:
    return DeleteShareGroupStateResponse(
        results=results_of(
            context,
            request,
            serve=partial(delete, context),
            refused=DeleteShareGroupStatePartitionResult,
            of_topic=DeleteShareGroupStateTopicResult,
        )
    )


def delete(
    context: RequestContext, key: SharePartitionKey, _partition: DeleteShareGroupStatePartition
) -> DeleteShareGroupStatePartitionResult:
    context.broker.coordinators.share_states.delete(key, context.now_ms)
    return DeleteShareGroupStatePartitionResult(partition=key.partition)
