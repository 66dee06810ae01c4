"""The words of access control lists: types of resources, operations, patterns, and their numbers.

Kafka: ResourceType, AclOperation, PatternType, AclPermissionType, AclEntry.supportedOperations.
"""

from enum import Enum, StrEnum

ANY = 1  # in a filter: every type, operation or permission
DENY, ALLOW = 2, 3
CLUSTER_NAME = "kafka-cluster"


class Pattern(Enum):
    """How a name is compared; the value is the number on the wire."""

    MATCH = 2  # in a filter: every entry that applies to the name
    LITERAL = 3
    PREFIXED = 4


class Operation(StrEnum):
    """What may be done with a resource."""

    ALL = "all"
    READ = "read"
    WRITE = "write"
    CREATE = "create"
    DELETE = "delete"
    ALTER = "alter"
    DESCRIBE = "describe"
    CLUSTER_ACTION = "cluster-action"
    DESCRIBE_CONFIGS = "describe-configs"
    ALTER_CONFIGS = "alter-configs"
    IDEMPOTENT_WRITE = "idempotent-write"
    CREATE_TOKENS = "create-tokens"
    DESCRIBE_TOKENS = "describe-tokens"
    TWO_PHASE_COMMIT = "two-phase-commit"

    @property
    def number(self) -> int:
        """The number on the wire, from 2 in the order of declaration."""
        return list(Operation).index(self) + 2


class Resource(StrEnum):
    """What has access control entries."""

    TOPIC = "topic"
    GROUP = "group"
    CLUSTER = "cluster"
    TRANSACTIONAL_ID = "transactional-id"
    DELEGATION_TOKEN = "delegation-token"
    USER = "user"

    @property
    def number(self) -> int:
        """The number on the wire, from 2 in the order of declaration."""
        return list(Resource).index(self) + 2


_CONFIGS = (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
SUPPORTED = {
    Resource.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        *_CONFIGS,
    ),
    Resource.GROUP: (Operation.READ, Operation.DELETE, Operation.DESCRIBE, *_CONFIGS),
    Resource.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.IDEMPOTENT_WRITE,
        *_CONFIGS,
    ),
    Resource.TRANSACTIONAL_ID: (
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.TWO_PHASE_COMMIT,
    ),
    Resource.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    Resource.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
OPERATION_NAMES = {operation.number: operation.value for operation in Operation}
RESOURCE_NAMES = {resource.number: resource.value for resource in Resource}
PATTERN_NAMES = {Pattern.LITERAL.value: "literal", Pattern.PREFIXED.value: "prefixed"}
PERMISSION_NAMES = {DENY: "deny", ALLOW: "allow"}
