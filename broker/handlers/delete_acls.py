"""DeleteAcls (key 31, v1-3).

Removes the access control entries that match filters, and returns for each filter those that it
matches. They are no longer in force, and the removal is on disk, when the response is sent. Without
an authorizer every filter gets SECURITY_DISABLED."""

from collections.abc import Sequence

from odradek.broker.requests.acl_requests import check_codes, check_may_change
from odradek.broker.requests.context import RequestContext
from odradek.broker.turns.slices import Slices
from odradek.coordinator.metadata.acl_changes import Deletions
from odradek.coordinator.metadata.acls import AclFilter
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from odradek.protocol.records.cluster_metadata import AccessControlEntryRecord


async def handle(context: RequestContext, request: DeleteAclsRequest) -> DeleteAclsResponse:
    filters = [filter_of(wanted) for wanted in context.sliced(request.filters)]
    for each in context.sliced(filters):
        check_codes(each.resource_type, each.pattern_type, each.operation, each.permission)
    results: Deletions
    try:
        check_may_change(context)
        results = await context.broker.admin.operations.run(
            lambda slices: delete(context, filters, slices)
        )
    except ApiError as error:
        results = [error.with_traceback(None)] * len(filters)
    else:
        await context.broker.metadata_log.sync()
    return DeleteAclsResponse(
        filter_results=[answer(context, result) for result in context.sliced(results)]
    )


async def delete(
    context: RequestContext, filters: Sequence[AclFilter], slices: Slices
) -> Deletions:
    """Remove entries. It must not end before the index of the entries is clean."""
    async with context.broker.admin.operations.decision_lock:
        return context.broker.controller.delete_acls(filters, context.now_ms, slices.step)


def filter_of(wanted: DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        wanted.resource_type_filter,
        wanted.resource_name_filter,
        wanted.pattern_type_filter,
        wanted.principal_filter,
        wanted.host_filter,
        wanted.operation,
        wanted.permission_type,
    )


def answer(
    context: RequestContext, result: list[AccessControlEntryRecord] | ApiError
) -> DeleteAclsFilterResult:
    if isinstance(result, ApiError):
        return DeleteAclsFilterResult(
            error_code=result.code, error_message=result.message, matching_acls=[]
        )
    return DeleteAclsFilterResult(
        matching_acls=[deleted(entry) for entry in context.sliced(result)]
    )


def deleted(entry: AccessControlEntryRecord) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
