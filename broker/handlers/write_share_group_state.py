"""WriteShareGroupState (key 85, v0-1).

Stores what a share group has delivered of partitions since the last write (KIP-932). A leader with
an older epoch is refused.
v1 adds how many records are done."""

from functools import partial

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.share_state_requests import results_of
from odradek.coordinator.share_state.batches import DeliveryBatch
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.coordinator.share_state.state import StateWrite
from odradek.protocol.messages.write_share_group_state import (
    WriteShareGroupStatePartition,
    WriteShareGroupStatePartitionResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteShareGroupStateTopicResult,
)


def handle(
    context: RequestContext, request: WriteShareGroupStateRequest
) -> WriteShareGroupStateResponse:
    return WriteShareGroupStateResponse(
        results=results_of(
            context,
            request,
            serve=partial(write, context),
            refused=WriteShareGroupStatePartitionResult,
            of_topic=WriteShareGroupStateTopicResult,
        )
    )


def write(
    context: RequestContext, key: SharePartitionKey, partition: WriteShareGroupStatePartition
) -> WriteShareGroupStatePartitionResult:
    batches = tuple(
        DeliveryBatch(
            batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state
        )
        for batch in context.sliced(partition.state_batches)
    )
    state = StateWrite(
        state_epoch=partition.state_epoch,
        leader_epoch=partition.leader_epoch,
        start_offset=partition.start_offset,
        delivery_complete_count=partition.delivery_complete_count,
        batches=batches,
    )
    write_state = context.broker.coordinators.share_states.write
    if not write_state(key, state, context.now_ms, context.step):
        write_state(key, state, context.now_ms)  # the state has changed in a step
    return WriteShareGroupStatePartitionResult(partition=key.partition)
