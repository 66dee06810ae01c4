"""DeleteGroups (key 42, v0-3).

Forgets groups that have no members, with all that they committed.
v3 messages.  Not done: share groups that have read something, which is known to a coordinator that
is not served (coordinator/other_group.py)."""

from odradek.broker.requests.context import RequestContext
from odradek.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


def handle(context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    names = dict.fromkeys(request.groups_names)
    return DeleteGroupsResponse(results=context.broker.groups.delete_groups(names))
