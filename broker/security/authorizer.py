"""Decides whether a principal may perform an operation on a resource.

Without `authorizer.class.name` everything is allowed. AclAuthorizer has the rules of Kafka's
StandardAuthorizer:

1. A super user may do everything.
2. An entry (ACL) applies if its pattern matches the resource's name, its principal is the client's
   or `User:*`, and its host is the client's, a network that has the client's, or `*`.
3. If an entry that denies the operation applies, it is denied.
4. If an entry that allows it applies, it is allowed. To allow READ, WRITE, DELETE or ALTER also
   allows DESCRIBE, and to allow ALTER_CONFIGS also allows DESCRIBE_CONFIGS. To deny them does not
   deny the others.
5. Otherwise it is denied; on a resource to which no pattern of an entry applies,
   `allow.everyone.if.no.acl.found` decides.

Decisions are cached until the entries change, so an entry is in force when it is in the metadata.
"""

from __future__ import annotations

from odradek.config.keys_authorizer import AuthorizerSettings
from odradek.coordinator.metadata.acls import WILDCARD, Acls, Entry, PatternType, Permission
from odradek.coordinator.metadata.host_patterns import ClientHost
from odradek.protocol.api_keys import ApiKey
from odradek.protocol.errors import ApiError, ErrorCode

from .decision import DEFAULT_ALLOW, DEFAULT_DENY, SUPER_USER, Question, Rule
from .denials import DenialLog
from .operations import AclOperation, ResourceType
from .principal import Principal

# The name of the only resource of type CLUSTER. Kafka: Resource.CLUSTER_NAME.
CLUSTER_NAME = "kafka-cluster"
# The principal of an entry for everyone.
EVERYONE = "User:*"
# Clients choose names freely. When this many decisions are cached, all are forgotten. Decisions on
# longer names, which no topic has, are not cached.
MAX_CACHED_DECISIONS = 10_000
MAX_CACHED_NAME = 249

# For an operation, the others whose permission allows it, too (rule 4).
_ALSO_ALLOWED = {
    AclOperation.DESCRIBE: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}

# The error code and message of a refusal. Kafka: Errors. The types DELEGATION_TOKEN and USER are
# asked about by the APIs of delegation tokens only, which have answers of their own.
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
    """Allows every operation to every client: there is no authorizer in the configuration.

    Kafka: Authorizer.authorize, Authorizer.authorizeByResourceType.
    """

    has_rules = False

    def allows(
        self,
        principal: Principal,  # noqa: ARG002 # there are no rules
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

    def log_denial(self, question: Question, api_key: ApiKey, now_ms: int) -> None:
        """Log that a request was denied. Without rules nothing is denied."""

    def with_own_cache(self, max_decisions: int) -> Authorizer:  # noqa: ARG002 # there are none
        """Return one that decides alike, and keeps its decisions apart.

        It is for questions about thousands of resources at a time: they would displace the
        decisions about what clients use all the time.
        """
        return self


class AclAuthorizer(Authorizer):
    """Decides by the entries of the metadata log. Kafka: StandardAuthorizerData."""

    has_rules = True

    def __init__(
        self,
        acls: Acls,
        settings: AuthorizerSettings,
        *,
        max_decisions: int = MAX_CACHED_DECISIONS,
    ) -> None:
        """`max_decisions` are kept; then all are forgotten."""
        self._acls = acls
        self._settings = settings
        self._max_decisions = max_decisions
        self._super_users = settings.super_users
        self._without_entries = DEFAULT_ALLOW if settings.allows_by_default else DEFAULT_DENY
        self._decisions: dict[object, bool] = {}
        self._version = acls.version
        self._denials = DenialLog(self.rule_for)

    def allows(
        self,
        principal: Principal,
        client_host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Whether `principal`, connected from `client_host`, may perform `operation`."""
        if self._version != self._acls.version:
            self._forget()
        key = (principal, client_host, operation, resource_type, name)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self.rule_for(Question(*key)).is_allowed
            if len(name) <= MAX_CACHED_NAME:
                self._keep(key, decision)
        return decision

    def allows_on_any(
        self,
        principal: Principal,
        client_host: str,
        operation: AclOperation,
        resource_type: ResourceType,
    ) -> bool:
        """Whether `principal` may perform `operation` on at least one resource of a type.

        As in Kafka, an operation that is allowed only because another one is (DESCRIBE because of
        READ) does not count, unless it is allowed on all resources.
        """
        if self._version != self._acls.version:
            self._forget()
        key = (principal, client_host, operation, resource_type)
        decision = self._decisions.get(key)
        if decision is None:
            # Kafka asks for this name to find super users, and entries for all resources.
            question = Question(principal, client_host, operation, resource_type, "hardcode")
            decision = self.rule_for(question).is_allowed or self._is_any_allowed(question)
            self._keep(key, decision)
        return decision

    def with_own_cache(self, max_decisions: int) -> Authorizer:
        """See Authorizer."""
        return AclAuthorizer(self._acls, self._settings, max_decisions=max_decisions)

    def rule_for(self, question: Question) -> Rule:
        """Find the rule that decides, without the cache."""
        principal = str(question.principal)
        if principal in self._super_users:
            return SUPER_USER
        host = ClientHost(question.client_host)
        allowed: Rule | None = None
        has_entries = False
        for by_principal in self._acls.applying_to(question.resource_type, question.name):
            has_entries = True
            for holder in (principal, EVERYONE):
                for entry in by_principal.get(holder, {}).values():
                    if not host.matches(entry.host):
                        continue
                    if entry.permission_type != Permission.ALLOW:
                        if entry.operation in (AclOperation.ALL, question.operation):
                            return Rule(False, entry)
                    elif allowed is None and _allows(entry, question.operation):
                        allowed = Rule(True, entry)
        if allowed is not None:
            return allowed
        return DEFAULT_DENY if has_entries else self._without_entries

    def log_denial(self, question: Question, api_key: ApiKey, now_ms: int) -> None:
        """Log that a request was denied, in the form of Kafka's authorizer."""
        self._denials.log(question, api_key, now_ms)

    def _is_any_allowed(self, question: Question) -> bool:
        """Whether some entry allows the operation and is not overridden by those that deny it.

        Kafka: Authorizer.authorizeByResourceType.
        """
        host = ClientHost(question.client_host)
        denied: dict[int, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
        allowed: dict[int, set[str]] = {PatternType.LITERAL: set(), PatternType.PREFIXED: set()}
        for principal in {str(question.principal), EVERYONE}:
            for entry in self._acls.of_principal(question.resource_type, principal):
                if host.matches(entry.host) and entry.operation in (
                    AclOperation.ALL,
                    question.operation,
                ):
                    names = allowed if entry.permission_type == Permission.ALLOW else denied
                    names.setdefault(entry.pattern_type, set()).add(entry.resource_name)
        if WILDCARD in denied[PatternType.LITERAL]:
            return False
        if WILDCARD in allowed[PatternType.LITERAL]:
            return True
        literals = allowed[PatternType.LITERAL] - denied[PatternType.LITERAL]
        prefixes = denied[PatternType.PREFIXED]
        lengths = {len(prefix) for prefix in prefixes}
        return any(
            all(name[:length] not in prefixes for length in lengths)
            for name in literals | allowed[PatternType.PREFIXED]
        )

    def _keep(self, key: object, decision: bool) -> None:
        if len(self._decisions) >= self._max_decisions:
            self._decisions.clear()
        self._decisions[key] = decision

    def _forget(self) -> None:
        self._decisions.clear()
        self._version = self._acls.version


def _allows(entry: Entry, operation: AclOperation) -> bool:
    """Whether an entry that allows its operation also allows this one."""
    return entry.operation in (AclOperation.ALL, operation) or entry.operation in _ALSO_ALLOWED.get(
        operation, ()
    )
