"""DescribeAcls (key 29, v1-3).

Answers as Kafka does without an authorizer: SECURITY_DISABLED."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(
    context: RequestContext,
    request: DescribeAclsRequest,  # noqa: ARG001 # a handler's signature
) -> DescribeAclsResponse:
    try:
        context.check_cluster(AclOperation.DESCRIBE)
    except ApiError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message="There is no authorizer on this broker.",
    )
