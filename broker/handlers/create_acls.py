"""CreateAcls (key 30, v1-3).

Adds access control entries. They are on disk and in force when the response is sent. An entry that
exists already is answered like a new one. Without an authorizer every entry gets SECURITY_DISABLED.
"""

from odradek.broker.requests.acl_requests import check_codes, check_may_change
from odradek.broker.requests.context import RequestContext
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.create_acls import (
    CreateAclsCreation,
    CreateAclsRequest,
    CreateAclsResponse,
    CreateAclsResult,
)
from odradek.protocol.primitives import random_uuid
from odradek.protocol.records.cluster_metadata import AccessControlEntryRecord


async def handle(context: RequestContext, request: CreateAclsRequest) -> CreateAclsResponse:
    for new in context.sliced(request.creations):
        check_codes(
            new.resource_type, new.resource_pattern_type, new.operation, new.permission_type
        )
    results: list[ApiError | None]
    try:
        check_may_change(context)
        entries = [entry_of(new) for new in context.sliced(request.creations)]
        async with context.broker.admin.operations.decision_lock:
            results = context.broker.controller.create_acls(entries, context.now_ms, context.step)
    except ApiError as error:
        results = [error.with_traceback(None)] * len(request.creations)
    else:
        await context.broker.metadata_log.sync()
    return CreateAclsResponse(results=[answer(error) for error in context.sliced(results)])


def entry_of(new: CreateAclsCreation) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=random_uuid(),
        resource_type=new.resource_type,
        resource_name=new.resource_name,
        pattern_type=new.resource_pattern_type,
        principal=new.principal,
        host=new.host,
        operation=new.operation,
        permission_type=new.permission_type,
    )


def answer(error: ApiError | None) -> CreateAclsResult:
    if error is None:
        return CreateAclsResult(error_message="")
    return CreateAclsResult(error_code=error.code, error_message=error.message)
