"""Access control entries, and which of them an invocation of `odradek acls` means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from .acl_terms import ALLOW, ANY, DENY, PERMISSION_NAMES, SUPPORTED, Operation, Pattern, Resource
from .failure import CommandError
from .principals import principal_text

ANY_HOST = "*"
ALL_NAMES = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry, in the words that are printed."""

    principal: str
    permission: str
    operation: str
    resource: str
    name: str
    pattern: str
    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """Which entries are meant, in the numbers of requests; None and ANY stand for any."""

    resource: int = ANY
    name: str | None = None
    pattern: int = ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY


@dataclass(frozen=True, slots=True, kw_only=True)
class AclChoice:
    """What the options say. `principal` None and no `hosts` stand for any, in a filter."""

    principal: str | None
    resources: Sequence[tuple[Resource, str]]
    prefix: bool
    operations: Sequence[Operation]
    producer: bool
    consumer: bool
    idempotent: bool
    deny: bool
    hosts: Sequence[str]


def entries_of(choice: AclChoice) -> list[Entry]:
    """The entries to add. Raises CommandError."""
    assert choice.principal is not None, "add needs a principal"
    principal = principal_text(choice.principal)
    return [
        Entry(
            principal=principal,
            permission=PERMISSION_NAMES[DENY if choice.deny else ALLOW],
            operation=operation,
            resource=resource,
            name=name,
            pattern=_pattern(choice, resource, name).name.lower(),
            host=host,
        )
        for (resource, name, operation), host in product(_permitted(choice), choice.hosts)
    ]


def filters_of(choice: AclChoice, *, everything: bool) -> list[EntryFilter]:
    """The filters of the entries to remove; `everything` must say so if all are meant.

    Raises CommandError.
    """
    is_for_a_role = choice.producer or choice.consumer
    narrowed = (
        choice.principal,
        choice.resources,
        choice.operations,
        choice.hosts,
        choice.deny,
        is_for_a_role,
    )
    if not any(narrowed) and not everything:
        raise CommandError("name a principal, a resource or an operation, or give --all")
    if everything and any((*narrowed, choice.prefix)):
        raise CommandError("--all means all entries: give it alone, or leave it out")
    permission = DENY if choice.deny else ALLOW if is_for_a_role else ANY
    principal = None if choice.principal is None else principal_text(choice.principal)
    hosts: Sequence[str | None] = choice.hosts or [None]
    return [
        EntryFilter(
            resource=ANY if resource is None else resource.number,
            name=name,
            pattern=pattern,
            principal=principal,
            host=host,
            operation=ANY if operation is None else operation.number,
            permission=permission,
        )
        for (resource, name, pattern, operation), host in product(
            _chosen_resources(choice, is_for_a_role), hosts
        )
    ]


def _chosen_resources(
    choice: AclChoice, is_for_a_role: bool
) -> Iterator[tuple[Resource | None, str | None, int, Operation | None]]:
    if is_for_a_role:
        for resource, name, operation in _permitted(choice):
            yield resource, name, _pattern(choice, resource, name).value, operation
        return
    operations: Sequence[Operation | None] = choice.operations or [None]
    for asked in operations:
        for resource, name in choice.resources:
            yield resource, name, _pattern(choice, resource, name).value, asked
        if not choice.resources:
            yield None, None, Pattern.PREFIXED.value if choice.prefix else ANY, asked


def _pattern(choice: AclChoice, resource: Resource, name: str) -> Pattern:
    is_prefix = choice.prefix and resource is not Resource.CLUSTER and name != ALL_NAMES
    return Pattern.PREFIXED if is_prefix else Pattern.LITERAL


def _permitted(choice: AclChoice) -> list[tuple[Resource, str, Operation]]:
    """What the principal may do with each resource. Raises CommandError."""
    if choice.producer or choice.consumer:
        if choice.operations:
            raise CommandError("--producer and --consumer say which operations: drop --operation")
        return [*dict.fromkeys(_of_role(choice))]
    if not choice.resources:
        raise CommandError("name a resource: --topic, --group, --cluster, --transactional-id, ...")
    if not choice.operations:
        raise CommandError("give --operation, or --producer or --consumer")
    permitted = [
        (resource, name, operation)
        for (resource, name), operation in product(choice.resources, choice.operations)
    ]
    for resource, _, operation in permitted:
        if operation is not Operation.ALL and operation not in SUPPORTED[resource]:
            possible = ", ".join((*SUPPORTED[resource], Operation.ALL))
            raise CommandError(f"a {resource} has no operation {operation}, only {possible}")
    return permitted


def _of_role(choice: AclChoice) -> Iterator[tuple[Resource, str, Operation]]:
    """The operations of a producer and of a consumer. Kafka: AclCommand."""
    names: dict[Resource, list[str]] = {resource: [] for resource in Resource}
    for resource, name in choice.resources:
        names[resource].append(name)
    topics, groups = names[Resource.TOPIC], names[Resource.GROUP]
    if not topics or (choice.consumer and not groups):
        needed = "--topic and --group" if choice.consumer else "--topic"
        raise CommandError(f"--{'consumer' if choice.consumer else 'producer'} needs {needed}")
    if choice.producer:
        for operation in (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE):
            yield from ((Resource.TOPIC, name, operation) for name in topics)
        for operation in (Operation.WRITE, Operation.DESCRIBE):
            for name in names[Resource.TRANSACTIONAL_ID]:
                yield Resource.TRANSACTIONAL_ID, name, operation
        if choice.idempotent:
            yield Resource.CLUSTER, "kafka-cluster", Operation.IDEMPOTENT_WRITE
    if choice.consumer:
        for operation in (Operation.READ, Operation.DESCRIBE):
            yield from ((Resource.TOPIC, name, operation) for name in topics)
        yield from ((Resource.GROUP, name, Operation.READ) for name in groups)
