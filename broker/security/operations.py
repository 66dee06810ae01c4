"""The types of resources, the operations on them, and the bit fields of operations in responses.

Kafka: ResourceType, AclOperation, AclEntry.supportedOperations, Utils.to32BitField; KIP-430.
"""

from collections.abc import Iterable
from enum import IntEnum


class ResourceType(IntEnum):
    """Types of resources. On the wire and in ACL records: never renumber."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    @property
    def display_name(self) -> str:
        """The name in logs, as Kafka writes it: TransactionalId."""
        return "".join(word.capitalize() for word in self.name.split("_"))


class AclOperation(IntEnum):
    """Operations on resources. On the wire, as bit numbers, and in ACL records: never renumber.

    ALL is in ACLs only.
    """

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


def bit_field(operations: Iterable[AclOperation]) -> int:
    """Pack distinct operations into a 32-bit field: bit n is set for operation n."""
    return sum(1 << operation for operation in operations)


# The operations in the bit fields of responses. Those of other types have no such field.
SUPPORTED_OPERATIONS = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DESCRIBE,
        AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.ALTER,
        AclOperation.IDEMPOTENT_WRITE,
        AclOperation.DESCRIBE,
    ),
}
# The value of the bit field in a response if the request did not ask for the operations.
NOT_REQUESTED = -(1 << 31)
