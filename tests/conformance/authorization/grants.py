"""The access control entries of one row of the matrix.

A row is nothing at all, or one operation on one type of resource, granted in one of four ways: by
literal names, by a prefix, on all resources of the type, or on all but with this operation denied.
The fourth way grants everything else as well.
"""

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from odradek.broker.security.authorizer import CLUSTER_NAME
from odradek.broker.security.operations import SUPPORTED_OPERATIONS, AclOperation, ResourceType
from odradek.coordinator.metadata.acls import PatternType, Permission
from odradek.protocol.messages.create_acls import CreateAclsCreation

CLIENT_HOST, ADMINISTRATOR_HOST = "127.0.0.1", "127.0.0.2"
EVERYONE = "User:*"
# Names that begin so are granted; others exist, too.
PREFIX = "m-"
TYPES = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)
OPERATIONS = {
    **SUPPORTED_OPERATIONS,
    # Not among those that are shown to clients, but DeleteTopics asks for it.
    ResourceType.CLUSTER: (*SUPPORTED_OPERATIONS[ResourceType.CLUSTER], AclOperation.DELETE),
    ResourceType.TRANSACTIONAL_ID: (
        AclOperation.DESCRIBE,
        AclOperation.WRITE,
        AclOperation.TWO_PHASE_COMMIT,
    ),
}


class Way(Enum):
    """How an operation is granted, or denied."""

    LITERAL = "literal"
    PREFIXED = "prefixed"
    WILDCARD = "wildcard"
    DENIED = "denied"


class Grant(NamedTuple):
    """One row of the matrix."""

    operation: AclOperation
    resource_type: ResourceType
    way: Way

    def __str__(self) -> str:
        return f"{self.way.value} {self.operation.name} {self.resource_type.name}"

    def entries(self, names: dict[ResourceType, list[str]]) -> Iterator[CreateAclsCreation]:
        """The entries to create; `names`: the literal names of each type."""
        kind, operation = self.resource_type, self.operation
        is_cluster = kind is ResourceType.CLUSTER
        match self.way:
            case Way.LITERAL:
                for name in [CLUSTER_NAME] if is_cluster else names[kind]:
                    yield entry(kind, name, operation)
            case Way.PREFIXED:
                name = CLUSTER_NAME if is_cluster else PREFIX
                yield entry(kind, name, operation, PatternType.PREFIXED)
            case Way.WILDCARD:
                # The cluster has one name, and Kafka accepts no other.
                yield entry(kind, CLUSTER_NAME if is_cluster else "*", operation)
            case Way.DENIED:
                yield from everything()
                name = CLUSTER_NAME if is_cluster else PREFIX
                pattern_type = PatternType.LITERAL if is_cluster else PatternType.PREFIXED
                deny = Permission.DENY
                yield entry(kind, name, operation, pattern_type, permission=deny)


def entry(
    kind: ResourceType,
    name: str,
    operation: AclOperation,
    pattern_type: PatternType = PatternType.LITERAL,
    *,
    permission: Permission = Permission.ALLOW,
    host: str = CLIENT_HOST,
) -> CreateAclsCreation:
    return CreateAclsCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern_type,
        principal=EVERYONE,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def everything(host: str = CLIENT_HOST) -> Iterator[CreateAclsCreation]:
    """Everything on every type of resource, for those who come from `host`."""
    for kind in ResourceType:
        name = CLUSTER_NAME if kind is ResourceType.CLUSTER else "*"
        yield entry(kind, name, AclOperation.ALL, host=host)


def all_grants() -> Iterator[Grant]:
    for kind in TYPES:
        for operation in (*OPERATIONS[kind], AclOperation.ALL):
            for way in Way:
                yield Grant(operation, kind, way)
