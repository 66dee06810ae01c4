"""AlterClientQuotas (key 49, v0-1).

The quotas are on disk and in force when the response is sent.
Kafka: ControllerApis.handleAlterClientQuotas, AlterClientQuotasRequest."""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.quota_changes import MAX_PARTS, QuotaAlteration, sorted_entity
from odradek.coordinator.runtime.steps import free
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.alter_client_quotas import (
    AlterClientQuotasEntityData,
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
)


async def handle(
    context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    try:
        context.check_cluster(AclOperation.ALTER_CONFIGS)
        alterations = [alteration_of(context, entry) for entry in context.sliced(request.entries)]
        results = await context.broker.admin.quotas.alter(
            alterations, validate_only=request.validate_only, step=context.step
        )
    except ApiError as error:
        return AlterClientQuotasResponse(
            entries=[answer(entry.entity, error) for entry in context.sliced(request.entries)]
        )
    answers = [
        answer(
            [
                AlterClientQuotasEntityData(entity_type=kind, entity_name=name)
                for kind, name in sorted_entity(entity)
            ],
            error,
        )
        for entity, error in context.sliced(iter(results.items()))
    ]
    free(context.step, alterations, results)
    return AlterClientQuotasResponse(entries=answers)


def alteration_of(
    context: RequestContext, entry: AlterClientQuotasRequestEntryData
) -> QuotaAlteration:
    entity: dict[str, str | None] = {}
    for part in context.sliced(entry.entity):
        # The first part that is too much shows that the entity is refused: no more are needed.
        if len(entity) <= MAX_PARTS or part.entity_type in entity:
            entity[part.entity_type] = part.entity_name
    return QuotaAlteration(
        entity=entity,
        changes=tuple(
            (op.key, None if op.remove else op.value) for op in context.sliced(entry.ops)
        ),
    )


def answer(
    entity: list[AlterClientQuotasEntityData], error: ApiError | None
) -> AlterClientQuotasResponseEntryData:
    return AlterClientQuotasResponseEntryData(
        error_code=error.code if error else 0,
        error_message=error.message if error else None,
        entity=entity,
    )
