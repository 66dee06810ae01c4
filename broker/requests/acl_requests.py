"""Checks that the requests for access control entries share."""

from odradek.broker.security.operations import AclOperation
from odradek.protocol.errors import ApiError, ErrorCode

from .answer import RefusedRequestError
from .context import RequestContext

NO_AUTHORIZER = "No Authorizer is configured"


def check_may_change(context: RequestContext) -> None:
    """Raise CLUSTER_AUTHORIZATION_FAILED, or SECURITY_DISABLED if there is no authorizer."""
    context.check_cluster(AclOperation.ALTER)
    if not context.broker.security.authorizer.has_rules:
        raise ApiError(ErrorCode.SECURITY_DISABLED, f"{NO_AUTHORIZER}.")


def check_codes(*codes: int) -> None:
    """Refuse a request that has the code 0 (unknown) for an enum, as Kafka refuses to parse it."""
    if 0 in codes:
        raise RefusedRequestError("a resource type, pattern type, operation or permission is 0")
