"""AlterConfigs (key 33, v0-2).

Replaces all overrides of a topic, broker, group or client metrics subscription: an override that
the request does not name is deleted. Errors are as in IncrementalAlterConfigs, and changes are on
disk and in effect when the response is sent. Loggers cannot be changed with this API.
"""

from functools import partial

from odradek.broker.requests.config_access import check_config_access
from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.config_changes import (
    Alteration,
    AlterOperation,
    ConfigChange,
    ConfigResource,
    free_alterations,
)
from odradek.coordinator.runtime.steps import free
from odradek.protocol.errors import ApiError
from odradek.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
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
    return AlterConfigsResponse(responses=answers)


def alteration_of(context: RequestContext, resource: AlterConfigsResource) -> Alteration:
    return Alteration(
        resource=ConfigResource(resource.resource_type, resource.resource_name),
        changes=[
            ConfigChange(config.name, AlterOperation.SET, config.value)
            for config in context.sliced(resource.configs)
        ],
        replaces=True,
    )


def answer(resource: AlterConfigsResource, error: ApiError | None) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=error.code if error else 0,
        error_message=error.message if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
