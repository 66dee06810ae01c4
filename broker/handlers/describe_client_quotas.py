"""DescribeClientQuotas (key 48, v0-1).

Quotas are not served yet, so the list is always empty. An invalid filter is refused as in Kafka.
Kafka: ClientQuotasImage.describe."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
EXACT, DEFAULT, SPECIFIED = 0, 1, 2  # match_type


def handle(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    try:
        context.check_cluster(AclOperation.DESCRIBE_CONFIGS)
        check_filter(request.components)
    except ApiError as error:
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=error.message, entries=None
        )
    return DescribeClientQuotasResponse(error_message="", entries=[])


def check_filter(components: list[DescribeClientQuotasComponentData]) -> None:
    """Raise INVALID_REQUEST or UNSUPPORTED_VERSION if the filter is not valid."""
    seen: set[str] = set()
    for component in components:
        check_type(component.entity_type, seen)
        check_match(component)
        seen.add(component.entity_type)
    if IP in seen and seen & {USER, CLIENT_ID}:
        raise invalid("An IP filter component does not go with a user or client id.")


def check_type(entity_type: str, seen: set[str]) -> None:
    if not entity_type:
        raise invalid("Invalid empty entity type.")
    if entity_type in seen:
        raise invalid(f"Entity type {entity_type} cannot appear more than once in the filter.")
    if entity_type not in (USER, CLIENT_ID, IP):
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {entity_type}")


def check_match(component: DescribeClientQuotasComponentData) -> None:
    if component.match_type == EXACT:
        if component.match is None:
            raise invalid("An exact match needs a match string.")
    elif component.match_type not in (DEFAULT, SPECIFIED):
        raise invalid(f"Unknown match type {component.match_type}")
    elif component.match is not None:
        raise invalid(f"Match type {component.match_type} takes no match string.")


def invalid(text: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, text)
