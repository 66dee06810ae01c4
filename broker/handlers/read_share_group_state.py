"""ReadShareGroupState (key 84, v0).

Reads what a share group has delivered of partitions (KIP-932). The leader of a partition sends it
once; a new leader epoch is stored, so that an older leader cannot write any more."""

from functools import partial

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.share_state_requests import results_of
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.messages.read_share_group_state import (
    ReadShareGroupStateBatch,
    ReadShareGroupStatePartition,
    ReadShareGroupStatePartitionResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateTopicResult,
)


def handle(
    context: RequestContext, request: ReadShareGroupStateRequest
) -> ReadShareGroupStateResponse:
    return ReadShareGroupStateResponse(
        results=results_of(
            context,
            request,
            serve=partial(read, context),
            refused=partial(
                ReadShareGroupStatePartitionResult, state_epoch=0, start_offset=0, state_batches=[]
            ),
            of_topic=ReadShareGroupStateTopicResult,
        )
    )


def read(
    context: RequestContext, key: SharePartitionKey, partition: ReadShareGroupStatePartition
) -> ReadShareGroupStatePartitionResult:
    state = context.broker.coordinators.share_states.read(
        key, partition.leader_epoch, context.now_ms
    )
    return ReadShareGroupStatePartitionResult(
        partition=key.partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=[
            ReadShareGroupStateBatch(
                first_offset=batch.first_offset,
                last_offset=batch.last_offset,
                delivery_state=batch.delivery_state,
                delivery_count=batch.delivery_count,
            )
            for batch in context.sliced(state.batches)
        ],
    )
