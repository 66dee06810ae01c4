"""DescribeAcls (key 29, v1-3).

There is no authorizer, and the answer is what Kafka says then."""

from odradek.broker.requests.context import RequestContext
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(context: RequestContext, request: DescribeAclsRequest) -> DescribeAclsResponse:  # noqa: ARG001 # a handler's signature
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message="There is no authorizer on this broker.",
    )
