"""Decides whether a principal may perform an operation on a resource.

No ACLs are enforced yet: a configuration that names an authorizer is refused at start, so every
operation is allowed, as in Kafka without `authorizer.class.name`.
"""

from odradek.protocol.errors import ApiError, ErrorCode

from .operations import AclOperation, ResourceType
from .principal import Principal

# The name of the only resource of type CLUSTER. Kafka: Resource.CLUSTER_NAME.
CLUSTER_NAME = "kafka-cluster"

# The error code and message of a refusal. Kafka: Errors.
_REFUSALS = {
    ResourceType.TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    ResourceType.GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    ResourceType.CLUSTER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    ResourceType.TRANSACTIONAL_ID: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}


def refusal(resource_type: ResourceType) -> ApiError:
    """The error that a client gets when it may not use a resource of this type."""
    return ApiError(*_REFUSALS[resource_type])


class Authorizer:
    """Allows every operation to every client.

    Kafka: Authorizer.authorize, Authorizer.authorizeByResourceType.
    """

    def allows(
        self,
        principal: Principal,  # noqa: ARG002 # no rules yet: see the module
        client_host: str,  # noqa: ARG002
        operation: AclOperation,  # noqa: ARG002
        resource_type: ResourceType,  # noqa: ARG002
        name: str,  # noqa: ARG002
    ) -> bool:
        """Whether `principal`, connected from `client_host`, may perform `operation`."""
        return True

    def allows_on_any(
        self,
        principal: Principal,  # noqa: ARG002
        client_host: str,  # noqa: ARG002
        operation: AclOperation,  # noqa: ARG002
        resource_type: ResourceType,  # noqa: ARG002
    ) -> bool:
        """Whether `principal` may perform `operation` on at least one resource of a type."""
        return True
