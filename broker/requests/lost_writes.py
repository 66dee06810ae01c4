"""Answers that tell of what a coordinator wrote and the disk has lost.

A coordinator answers from its state, which is ahead of the disk while an fsync runs
(flush.messages). When that fails, the log is offline and its groups have no coordinator any more:
so the same request is answered once more, as everybody is answered from then on, by
NOT_COORDINATOR. What concerns groups in other logs has happened, and stays.

Kafka: CoordinatorRuntime, whose append fails then and which unloads the partition.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ...protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

if TYPE_CHECKING:
    from ...protocol.schema import Message
    from .context import RequestContext


async def answer_again(
    handle: Callable[[RequestContext, Any], Any],
    context: RequestContext,
    request: Message,
    response: Message,
) -> Message:
    """The answer, now that some coordinators are gone; `response` where it is still true.

    Views in the request may be dead by now: who has no coordinator does not look at them.
    """
    is_served = context.broker.groups.shards.is_served
    if isinstance(request, DeleteGroupsRequest):
        return without_lost(cast("DeleteGroupsResponse", response), is_served, handle, context)
    group_id = getattr(request, "group_id", None)
    if not group_id or is_served(group_id):
        return response
    answer = handle(context, request)
    if inspect.isawaitable(answer):
        answer = await answer
    return cast("Message", answer)


def without_lost(
    response: DeleteGroupsResponse,
    is_served: Callable[[str], bool],
    handle: Callable[[RequestContext, Any], Any],
    context: RequestContext,
) -> DeleteGroupsResponse:
    """Each group that was to be deleted has an answer of its own."""
    lost = [one.group_id for one in response.results if not is_served(one.group_id)]
    again = handle(context, DeleteGroupsRequest(groups_names=lost))
    kept = [one for one in response.results if is_served(one.group_id)]
    return DeleteGroupsResponse(results=[*kept, *again.results])
