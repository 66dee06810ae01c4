"""The authorization that a client needs to describe or alter the configs of a resource.

Kafka: ControllerApis.authorizeAlterResource, ConfigHelper.handleDescribeConfigsRequest.
"""

from odradek.broker.security.authorizer import CLUSTER_NAME
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.coordinator.metadata.configs import ConfigResourceType

from .context import RequestContext


def check_config_access(
    context: RequestContext, operation: AclOperation, resource_type: int, name: str
) -> None:
    """Raise an AUTHORIZATION_FAILED error if the client may not perform `operation`.

    Topics and groups are resources of their own. All other configs belong to the cluster.
    """
    match resource_type:
        case ConfigResourceType.TOPIC:
            context.check_topic(operation, name)
        case ConfigResourceType.GROUP:
            context.check_group(operation, name)
        case _:
            context.check(operation, ResourceType.CLUSTER, CLUSTER_NAME)
