"""Handles requests again whose coordinator write failed to sync.

Where flush.messages asks for it, a response waits for the fsync of what a coordinator has written
(dispatch.py). When the fsync fails, the log goes offline, and its groups, transactional ids or
share-partitions have no coordinator. The request is then handled once more, so that the client gets
the NOT_COORDINATOR that every later request gets. What the request changed in other logs stays.

Kafka: CoordinatorRuntime, whose append fails in this case, and which unloads the partition.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import cast

from odradek.broker.turns.slices import Slices
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteGroupsResult,
)
from odradek.protocol.messages.delete_share_group_state import DeleteShareGroupStateRequest
from odradek.protocol.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from odradek.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from odradek.protocol.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
)
from odradek.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from odradek.protocol.schema import Message

from .context import RequestContext
from .error_responses import handle_or_refuse
from .route import Handler
from .share_state_requests import StateRequest

SHARE_STATE_REQUESTS = (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)


async def retry_if_lost(
    handle: Handler, context: RequestContext, request: Message, response: Message
) -> Message:
    """Return `response` if what the request names still has a coordinator.

    Otherwise the request is handled again, in slices, and this returns the new response.
    DeleteGroups is handled again only for the groups without a coordinator.

    The receive buffer that the request refers to may have been overwritten. Handlers do not read
    these bytes if the group has no coordinator.
    """
    if context.slices is not None:
        return await _retry_in_slices(handle, context, request, response)

    async def retry(slices: Slices) -> Message:
        context.slices = slices
        return await _retry_in_slices(handle, context, request, response)

    return await context.broker.turns.slices.run(retry)


async def _retry_in_slices(
    handle: Handler, context: RequestContext, request: Message, response: Message
) -> Message:
    coordinators = context.broker.coordinators
    is_group_served = coordinators.groups.shards.is_served
    if isinstance(request, DeleteGroupsRequest):
        return _retry_lost_deletions(
            cast("DeleteGroupsResponse", response), is_group_served, handle, context
        )
    group_id = getattr(request, "group_id", None)
    is_transactional_id_served = coordinators.transactions.shards.is_served
    is_share_state_served = coordinators.share_states.shards.is_served
    if (
        (not group_id or is_group_served(group_id))
        and all(map(is_transactional_id_served, _transactional_ids(request)))
        and all(map(is_share_state_served, _share_partitions(context, request)))
    ):
        return response
    answer = handle_or_refuse(handle, context, request)
    if inspect.isawaitable(answer):
        answer = await answer
    return cast("Message", answer)


def _transactional_ids(request: Message) -> list[str]:
    """The transactional ids that a request names, in whatever API; empty ones are left out."""
    if isinstance(request, AddPartitionsToTxnRequest):
        ids = [each.transactional_id for each in request.transactions]
        ids.append(request.v3_and_below_transactional_id)
    else:
        ids = [getattr(request, "transactional_id", None) or ""]
    return [transactional_id for transactional_id in ids if transactional_id]


def _share_partitions(context: RequestContext, request: Message) -> Iterator[str]:
    """Yield the share-partitions of a request to the share coordinator, as SharePartitionKey.text.

    Other requests have none.
    """
    if isinstance(request, SHARE_STATE_REQUESTS):
        state_request: StateRequest = request
        for topic in context.sliced(state_request.topics):
            for each in context.sliced(topic.partitions):
                yield SharePartitionKey(state_request.group_id, topic.topic_id, each.partition).text


def _retry_lost_deletions(
    response: DeleteGroupsResponse,
    is_served: Callable[[str], bool],
    handle: Handler,
    context: RequestContext,
) -> DeleteGroupsResponse:
    """Replace the results of the groups that have no coordinator any more."""
    kept: list[DeleteGroupsResult] = []
    lost: list[str] = []
    for result in context.sliced(response.results):
        if is_served(result.group_id):
            kept.append(result)
        else:
            lost.append(result.group_id)
    if not lost:
        return response
    retried = handle(context, DeleteGroupsRequest(groups_names=lost))
    return DeleteGroupsResponse(results=[*kept, *retried.results])
