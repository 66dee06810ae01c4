"""ReadShareGroupStateSummary (key 87, v0-1).

Reads the start offsets of a share group, for administrators (KIP-932). A partition without stored
state has -1.
v1 adds how many records are done."""

from functools import partial

from odradek.broker.requests.context import RequestContext
from odradek.broker.requests.share_state_requests import results_of
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryPartition,
    ReadShareGroupStateSummaryPartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadShareGroupStateSummaryTopicResult,
)


def handle(
    context: RequestContext, request: ReadShareGroupStateSummaryRequest
) -> ReadShareGroupStateSummaryResponse:
    return ReadShareGroupStateSummaryResponse(
        results=results_of(
            context,
            request,
            serve=partial(read, context),
            refused=partial(
                ReadShareGroupStateSummaryPartitionResult,
                state_epoch=0,
                leader_epoch=0,
                start_offset=0,
            ),
            of_topic=ReadShareGroupStateSummaryTopicResult,
        )
    )


def read(
    context: RequestContext, key: SharePartitionKey, _partition: ReadShareGroupStateSummaryPartition
) -> ReadShareGroupStateSummaryPartitionResult:
    state = context.broker.coordinators.share_states.read_summary(key)
    return ReadShareGroupStateSummaryPartitionResult(
        partition=key.partition,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )
