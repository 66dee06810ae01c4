"""Random sets of access control entries, and questions about them, from few names."""

import random
from collections.abc import Iterable
from typing import NamedTuple

from odradek.broker.security.authorizer import AclAuthorizer
from odradek.broker.security.decision import Question
from odradek.broker.security.operations import AclOperation, ResourceType
from odradek.broker.security.principal import Principal
from odradek.config.keys_authorizer import AuthorizerSettings
from odradek.coordinator.metadata.acls import Acls, Entry, PatternType, Permission
from odradek.protocol.primitives import random_uuid

# Prefixes of each other, the wildcard and names that begin with it, the name for which Kafka asks
# to find super users, and names in which Java has two characters for one.
NAMES = ("a", "ab", "abc", "abd", "b", "*", "*a", "#", "hardcode", "hard", "\u00e9", "\U0001f600a")
USERS = ("alice", "bob", "a:b")
PRINCIPALS = (*(f"User:{user}" for user in USERS), "User:*", "Group:alice")
HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.1.200", "::1", "2001:db8::5", "0.0.0.0", "::ffff:10.0.0.1")
NETWORKS = (
    *("10.0.0.2/31", "10.0.0.9/24", "010.0.0.1/32", "10.0.0.1/00", "0.0.0.0/0"),
    *("::1/128", "2001:db8::/32", "2001:db8::4/127", "[::1]/+64", "::/0"),
)
NO_NETWORKS = ("10.0.0.0/33", "10.0.0.256/8", "10.0.0/8", "10.0.0.1/", "::1/129", "::1/", "::1/x")
ENTRY_HOSTS = (
    *("*", "*", "*", "*", "10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1", "::1"),
    *NETWORKS,
    *NO_NETWORKS,
    "::ffff:10.0.0.1/120",
)
TYPES = (ResourceType.TOPIC, ResourceType.GROUP)
OPERATIONS = tuple(AclOperation)
PATTERN_TYPES = (PatternType.LITERAL, PatternType.PREFIXED)


class AclSet(NamedTuple):
    """Entries without repetitions, and the settings of the authorizer."""

    entries: tuple[Entry, ...]
    settings: AuthorizerSettings

    def authorizer(self) -> AclAuthorizer:
        """An authorizer that has replayed the entries."""
        return AclAuthorizer(acls_of(self.entries), self.settings)


def acls_of(entries: Iterable[Entry]) -> Acls:
    acls = Acls()
    for entry in entries:
        acls.replay(entry)
    return acls


def entry(
    principal: str = "User:alice",
    operation: AclOperation = AclOperation.READ,
    name: str = "a",
    *,
    resource_type: ResourceType = ResourceType.TOPIC,
    pattern_type: PatternType = PatternType.LITERAL,
    host: str = "*",
    permission: Permission = Permission.ALLOW,
) -> Entry:
    return Entry(
        id=random_uuid(),
        resource_type=int(resource_type),
        resource_name=name,
        pattern_type=int(pattern_type),
        principal=principal,
        host=host,
        operation=int(operation),
        permission_type=int(permission),
    )


def random_set(chance: random.Random) -> AclSet:
    distinct = {}
    # Few operations in a set, so that entries allow and deny the same.
    operations = chance.sample(OPERATIONS, 3)
    for _ in range(chance.randrange(12)):
        fields = (
            chance.choice(PRINCIPALS),
            chance.choice((AclOperation.ALL, *operations)),
            chance.choice(NAMES),
            chance.choice(TYPES),
            chance.choice(PATTERN_TYPES),
            chance.choice(ENTRY_HOSTS),
            chance.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
        )
        principal, operation, name, resource_type, pattern_type, host, permission = fields
        distinct[fields] = entry(
            principal,
            operation,
            name,
            resource_type=resource_type,
            pattern_type=pattern_type,
            host=host,
            permission=permission,
        )
    super_users = frozenset({"User:bob"} if chance.random() < 0.1 else ())
    settings = AuthorizerSettings(super_users, allows_by_default=chance.random() < 0.2)
    return AclSet(tuple(distinct.values()), settings)


def random_question(chance: random.Random) -> Question:
    return Question(
        Principal("User", chance.choice(USERS)),
        chance.choice(HOSTS),
        chance.choice([operation for operation in OPERATIONS if operation != AclOperation.ALL]),
        chance.choice(TYPES),
        chance.choice((*NAMES, "abcd", "zz")),
    )
