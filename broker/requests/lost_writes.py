"""Retries requests whose coordinator write failed to sync.

A coordinator answers from its state, which is ahead of the disk while an fsync runs
(flush.messages). When the fsync fails, the log is offline and its groups have no coordinator. The
request is then handled once more, so that the client gets the NOT_COORDINATOR that every later
request gets. What the request changed in other logs has happened and stays.

Kafka: CoordinatorRuntime, whose append fails in this case, and which unloads the partition.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.schema import Message

from .context import RequestContext


async def retry_after_lost_write(
    handle: Callable[[RequestContext, Any], Any],
    context: RequestContext,
    request: Message,
    response: Message,
) -> Message:
    """Return `response` if its groups still have a coordinator, else what `handle` answers now.

    Views in the request may be overwritten by now. Handlers do not read them if the group has no
    coordinator.
    """
    is_served = context.broker.groups.shards.is_served
    if isinstance(request, DeleteGroupsRequest):
        return _retry_lost_deletions(
            cast("DeleteGroupsResponse", response), is_served, handle, context
        )
    group_id = getattr(request, "group_id", None)
    if not group_id or is_served(group_id):
        return response
    answer = handle(context, request)
    if inspect.isawaitable(answer):
        answer = await answer
    return cast("Message", answer)


def _retry_lost_deletions(
    response: DeleteGroupsResponse,
    is_served: Callable[[str], bool],
    handle: Callable[[RequestContext, Any], Any],
    context: RequestContext,
) -> DeleteGroupsResponse:
    """Replace the results of groups without a coordinator; each group has its own result."""
    lost = [one.group_id for one in response.results if not is_served(one.group_id)]
    retried = handle(context, DeleteGroupsRequest(groups_names=lost))
    kept = [one for one in response.results if is_served(one.group_id)]
    return DeleteGroupsResponse(results=[*kept, *retried.results])
