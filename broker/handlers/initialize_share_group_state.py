"""InitializeShareGroupState (key 83, v0).

Creates the stored state of a share group for partitions (KIP-932). A group coordinator sends it
before the first delivery. Start offset -1: the leader of the partition decides it."""

from functools import partial

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.share_state_requests import results_of
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.messages.initialize_share_group_state import (
    InitializeShareGroupStatePartition,
    InitializeShareGroupStatePartitionResult,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeShareGroupStateTopicResult,
)


def handle(
    context: RequestContext, request: InitializeShareGroupStateRequest
) -> InitializeShareGroupStateResponse:
    return InitializeShareGroupStateResponse(
        results=results_of(
            context,
            request,
            serve=partial(initialize, context),
            refused=InitializeShareGroupStatePartitionResult,
            of_topic=InitializeShareGroupStateTopicResult,
        )
    )


def initialize(
    context: RequestContext, key: SharePartitionKey, partition: InitializeShareGroupStatePartition
) -> InitializeShareGroupStatePartitionResult:
    context.broker.coordinators.share_states.initialize(
        key, partition.state_epoch, partition.start_offset, context.now_ms
    )
    return InitializeShareGroupStatePartitionResult(partition=key.partition)
