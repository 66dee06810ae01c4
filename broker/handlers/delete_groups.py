"""DeleteGroups (key 42, v0-3).

Deletes groups that have no members, with their committed offsets.
v3 adds error messages."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteGroupsResult,
)


def handle(context: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    may_delete = {
        group_id: context.authorize(AclOperation.DELETE, ResourceType.GROUP, group_id)
        for group_id in context.sliced(dict.fromkeys(context.sliced(request.groups_names)))
    }
    deleted = context.broker.coordinators.groups.admin.delete(
        [
            group_id
            for group_id, is_allowed in context.sliced(iter(may_delete.items()))
            if is_allowed
        ],
        context.step,
    )
    context.broker.coordinators.groups_deleted(
        {result.group_id for result in context.sliced(deleted) if not result.error_code}
    )
    unauthorized = [
        DeleteGroupsResult(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for group_id, is_allowed in context.sliced(iter(may_delete.items()))
        if not is_allowed
    ]
    return DeleteGroupsResponse(results=[*deleted, *unauthorized])
