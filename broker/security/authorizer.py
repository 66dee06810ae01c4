"""Decides whether a principal may perform an operation on a resource.

No ACLs are enforced yet: a configuration that names an authorizer is refused at start, so every
operation is allowed, as in Kafka without `authorizer.class.name`.
"""

from enum import IntEnum

from .operations import AclOperation
from .principal import Principal

# The name of the only resource of type CLUSTER. Kafka: Resource.CLUSTER_NAME.
CLUSTER_NAME = "kafka-cluster"


class ResourceType(IntEnum):
    """Types of resources. On the wire and in ACL records: never renumber."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class Authorizer:
    """Kafka: Authorizer.authorize."""

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
