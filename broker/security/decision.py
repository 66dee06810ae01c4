"""A question to the authorizer, and the rule that answers it."""

from enum import IntEnum
from typing import NamedTuple

from odradek.coordinator.metadata.acls import Entry, PatternType, Permission

from .operations import AclOperation, ResourceType
from .principal import Principal


class Question(NamedTuple):
    """May this principal, connected from this host, perform this operation on this resource?"""

    principal: Principal
    client_host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str


class Rule(NamedTuple):
    """A decision, and what it is based on: an entry, or `reason`."""

    is_allowed: bool
    entry: Entry | None = None
    reason: str = ""

    def __str__(self) -> str:
        """The rule as Kafka's authorizer logs it. Kafka: StandardAuthorizerData.MatchingRule."""
        return self.reason if self.entry is None else f"MatchingAcl(acl={_shown(self.entry)})"


SUPER_USER = Rule(True, reason="SuperUser")
DEFAULT_ALLOW = Rule(True, reason="DefaultAllow")
DEFAULT_DENY = Rule(False, reason="DefaultDeny")


def _shown(entry: Entry) -> str:
    """An entry as Kafka logs it. Kafka: StandardAcl.toString."""
    return (
        f"StandardAcl[resourceType={_name_of(ResourceType, entry.resource_type)},"
        f" resourceName={entry.resource_name},"
        f" patternType={_name_of(PatternType, entry.pattern_type)}, principal={entry.principal},"
        f" host={entry.host}, operation={_name_of(AclOperation, entry.operation)},"
        f" permissionType={_name_of(Permission, entry.permission_type)}]"
    )


def _name_of(codes: type[IntEnum], code: int) -> str:
    """The name of a code; a newer Kafka may have written one that is not known here."""
    return codes(code).name if code in codes.__members__.values() else "UNKNOWN"
