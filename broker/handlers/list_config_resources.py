"""ListConfigResources (key 74, v0-1).

Lists the resources whose configs can be described: every topic, this broker and its loggers, and
the groups and client metrics subscriptions that have overrides.
v0 lists client metrics only · v1 lists all, and can select types (KIP-1142).
"""

from odradek.broker.requests.context import RequestContext
from odradek.broker.security.operations import AclOperation
from odradek.coordinator.metadata.configs import ConfigResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_config_resources import (
    ListConfigResourcesConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

OF_FIRST_VERSION = (ConfigResourceType.CLIENT_METRICS,)
OF_LATER_VERSIONS = (
    ConfigResourceType.GROUP,
    ConfigResourceType.CLIENT_METRICS,
    ConfigResourceType.BROKER_LOGGER,
    ConfigResourceType.BROKER,
    ConfigResourceType.TOPIC,
)


def handle(
    context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    if not context.authorize_cluster(AclOperation.DESCRIBE_CONFIGS):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    served = OF_LATER_VERSIONS if context.api_version else OF_FIRST_VERSION
    wanted = set(request.resource_types) or set(served)
    if not wanted.issubset(served):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ListConfigResourcesConfigResource(resource_name=name, resource_type=kind)
            for kind in served
            if kind in wanted
            for name in context.sliced(names_of(context, kind))
        ]
    )


def names_of(context: RequestContext, kind: ConfigResourceType) -> list[str]:
    metadata = context.broker.metadata
    match kind:
        case ConfigResourceType.TOPIC:
            return [topic.name for topic in metadata.topics.values()]
        case ConfigResourceType.BROKER | ConfigResourceType.BROKER_LOGGER:
            return [str(node) for node in context.broker.nodes.replica_ids]
    return metadata.configs.names(kind)
