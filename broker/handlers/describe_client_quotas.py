"""DescribeClientQuotas (key 48, v0-1).

An entity is shown if it has each part of the filter; with `strict`, and no other part.
Kafka: ClientQuotasImage.describe."""

from collections.abc import Sequence

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.client_quotas import CLIENT_ID, IP, USER, Entity
from odradek.coordinator.metadata.quota_changes import sorted_entity
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasComponentData,
    DescribeClientQuotasEntityData,
    DescribeClientQuotasEntryData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeClientQuotasValueData,
)

EXACT, DEFAULT, SPECIFIED = 0, 1, 2  # match_type


def handle(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    context.check_cluster(AclOperation.DESCRIBE_CONFIGS)
    check_filter(request.components)
    entries = [
        DescribeClientQuotasEntryData(
            entity=[
                DescribeClientQuotasEntityData(entity_type=kind, entity_name=name)
                for kind, name in sorted_entity(entity)
            ],
            values=[
                DescribeClientQuotasValueData(key=key, value=record.value)
                for key, record in records.items()
            ],
        )
        for entity, records in context.sliced(context.broker.metadata.quotas.by_entity.items())
        if matches(entity, request.components, strict=request.strict)
    ]
    return DescribeClientQuotasResponse(error_message="", entries=entries)


def matches(
    entity: Entity, components: Sequence[DescribeClientQuotasComponentData], *, strict: bool
) -> bool:
    if strict and len(entity) != len(components):
        return False
    names = dict(entity)
    return all(
        component.entity_type in names
        # `match` is None for the default entity, as its name is.
        and (component.match_type == SPECIFIED or names[component.entity_type] == component.match)
        for component in components
    )


def check_filter(components: list[DescribeClientQuotasComponentData]) -> None:
    """Raise INVALID_REQUEST or UNSUPPORTED_VERSION if the filter is not valid."""
    seen: set[str] = set()
    for component in components:
        check_type(component.entity_type, seen)
        check_match(component)
        seen.add(component.entity_type)
    if IP in seen and seen & {USER, CLIENT_ID}:
        raise invalid(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )


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
