"""Retries requests whose coordinator write failed to sync.

A coordinator answers from its state, which is ahead of the disk while an fsync runs
(flush.messages). When the fsync fails, the log is offline and its groups, transactional ids or
share-partitions have no coordinator. The request is then handled once more, so that the client gets
the NOT_COORDINATOR that every later request gets. What the request changed in other logs has
happened and stays.

Kafka: CoordinatorRuntime, whose append fails in this case, and which unloads the partition.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import cast

from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
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
    """Return `response` if what it names still has a coordinator, else what `handle` returns.

    The receive buffer that the request refers to may have been overwritten. Handlers do not read
    these bytes if the group has no coordinator.
    """
    coordinators = context.broker.coordinators
    is_served = coordinators.groups.shards.is_served
    if isinstance(request, DeleteGroupsRequest):
        return _retry_lost_deletions(
            cast("DeleteGroupsResponse", response), is_served, handle, context
        )
    group_id = getattr(request, "group_id", None)
    has_transactions = coordinators.transactions.shards.is_served
    has_states = coordinators.share_states.shards.is_served
    if (
        (not group_id or is_served(group_id))
        and all(map(has_transactions, _transactional_ids(request)))
        and all(map(has_states, _share_partitions(context, request)))
    ):
        return response
    answer = handle_or_refuse(handle, context, request)
    if inspect.isawaitable(answer):
        answer = await answer
    return cast("Message", answer)


def _transactional_ids(request: Message) -> list[str]:
    if isinstance(request, AddPartitionsToTxnRequest):
        named = [each.transactional_id for each in request.transactions]
        named.append(request.v3_and_below_transactional_id)
    else:
        named = [getattr(request, "transactional_id", None) or ""]
    return [transactional_id for transactional_id in named if transactional_id]


def _share_partitions(context: RequestContext, request: Message) -> Iterator[str]:
    """The share-partitions that a request to the share coordinator names."""
    if isinstance(request, SHARE_STATE_REQUESTS):
        named: StateRequest = request
        for topic in context.sliced(named.topics):
            for each in context.sliced(topic.partitions):
                yield SharePartitionKey(named.group_id, topic.topic_id, each.partition).text


def _retry_lost_deletions(
    response: DeleteGroupsResponse,
    is_served: Callable[[str], bool],
    handle: Handler,
    context: RequestContext,
) -> DeleteGroupsResponse:
    """Replace the results of the groups that have no coordinator any more."""
    lost = [item.group_id for item in response.results if not is_served(item.group_id)]
    retried = handle(context, DeleteGroupsRequest(groups_names=lost))
    kept = [item for item in response.results if is_served(item.group_id)]
    return DeleteGroupsResponse(results=[*kept, *retried.results])
