"""IncrementalAlterConfigs (key 44, v0-1).

Sets and deletes overrides of topics, brokers, groups and client metrics; appends to and subtracts
from lists of topics and brokers; changes the levels of the broker's loggers. Changes are on disk
and in effect when the response is sent. A resource that occurs twice is refused each time.
"""

from functools import partial

from odradek.broker.requests.config_access import check_config_access
from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.config_changes import (
    Alteration,
    ConfigChange,
    ConfigResource,
    free_alterations,
)
from odradek.coordinator.runtime.steps import free
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)


async def handle(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    alterations = [
        alteration_of(context, resource) for resource in context.sliced(request.resources)
    ]
    results = await context.broker.admin.configs.alter(
        alterations,
        check_authorized=partial(check_config_access, context, AclOperation.ALTER_CONFIGS),
        validate_only=request.validate_only,
        step=context.step,
    )
    pairs = zip(request.resources, results, strict=True)
    answers = [answer(*pair) for pair in context.sliced(pairs)]
    free_alterations(context.step, alterations)
    free(context.step, results)
    return IncrementalAlterConfigsResponse(responses=answers)


def alteration_of(context: RequestContext, resource: IncrementalAlterConfigsResource) -> Alteration:
    return Alteration(
        resource=ConfigResource(resource.resource_type, resource.resource_name),
        changes=[
            ConfigChange(config.name, config.config_operation, config.value)
            for config in context.sliced(resource.configs)
        ],
    )


def answer(
    resource: IncrementalAlterConfigsResource, error: ApiError | None
) -> IncrementalAlterConfigsResourceResponse:
    return IncrementalAlterConfigsResourceResponse(
        error_code=error.code if error else 0,
        error_message=error.message if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
