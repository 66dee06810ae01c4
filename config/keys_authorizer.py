"""Keys of authorization: the authorizer, and the settings that Kafka's StandardAuthorizer reads.

Kafka: ServerConfigs.AUTHORIZER_CLASS_NAME_CONFIG, StandardAuthorizer.configure.
"""

from collections.abc import Mapping
from typing import NamedTuple, Self

from .errors import invalid_value
from .key import KeyModel, Text, key

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SUPER_USERS = "super.users"
ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"


class AuthorizerKeys(KeyModel):
    """Which authorizer decides."""

    authorizer_class_name: Text = key(
        "", "Kafka's StandardAuthorizer, which obeys ACLs; empty: everything is allowed."
    )


class AuthorizerSettings(NamedTuple):
    """The settings of the StandardAuthorizer.

    `super_users` are principals ("User:alice") that may do everything. `allows_by_default` is the
    decision on a resource that has no ACLs.
    """

    super_users: frozenset[str] = frozenset()
    allows_by_default: bool = False

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Self:
        """Read the settings from keys and values as written. Raises ConfigError."""
        users = [user.strip() for user in texts.get(SUPER_USERS, "").split(";")]
        for user in filter(None, users):
            if ":" not in user:
                allowed = "must be principals like User:alice, separated by semicolons"
                raise invalid_value(SUPER_USERS, user, allowed)
        # As in Kafka, every text other than "true" means false.
        allows_by_default = texts.get(ALLOW_EVERYONE, "").strip().lower() == "true"
        return cls(frozenset(filter(None, users)), allows_by_default)
