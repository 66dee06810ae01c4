"""Which operations a client may perform, as the bit fields that responses carry.

Without an authorizer everybody may do everything that the kind of resource knows.
Kafka: AclEntry.supportedOperations, Utils.to32BitField; KIP-430.
"""

from enum import IntEnum


class AclOperation(IntEnum):
    """Operations on resources. On the wire, as bit numbers: never renumber."""

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


def bit_field(*operations: AclOperation) -> int:
    """The operations as one 32-bit field."""
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS = bit_field(
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
GROUP_OPERATIONS = bit_field(
    AclOperation.READ,
    AclOperation.DESCRIBE,
    AclOperation.DELETE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)
CLUSTER_OPERATIONS = bit_field(
    AclOperation.CREATE,
    AclOperation.CLUSTER_ACTION,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
    AclOperation.ALTER,
    AclOperation.IDEMPOTENT_WRITE,
    AclOperation.DESCRIBE,
)
# What a response says when the client did not ask.
NOT_ASKED = -(1 << 31)
