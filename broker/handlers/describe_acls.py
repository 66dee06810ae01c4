"""DescribeAcls (key 29, v1-3).

Lists the access control entries that match a filter, by the resources that they apply to. Without
an authorizer it answers SECURITY_DISABLED."""

from odradek.broker.requests.acl_requests import NO_AUTHORIZER, check_codes
from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.acls import AclFilter, Pattern, pattern_of
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.describe_acls import (
    DescribeAclsAcl,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def handle(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:
    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    check_codes(wanted.resource_type, wanted.pattern_type, wanted.operation, wanted.permission)
    context.check_cluster(AclOperation.DESCRIBE)
    if not context.broker.security.authorizer.has_rules:
        raise ApiError(ErrorCode.SECURITY_DISABLED, f"{NO_AUTHORIZER} on the broker")
    by_pattern: dict[Pattern, list[DescribeAclsAcl]] = {}
    for entry in context.broker.metadata.acls.select(wanted, context.step):
        described = DescribeAclsAcl(
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission_type,
        )
        by_pattern.setdefault(pattern_of(entry), []).append(described)
    return DescribeAclsResponse(
        error_message="",
        resources=[
            DescribeAclsResource(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                acls=acls,
            )
            for pattern, acls in context.sliced(iter(by_pattern.items()))
        ],
    )
