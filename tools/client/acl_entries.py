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
class Wish:
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


def entries_of(wish: Wish) -> list[Entry]:
    """The entries to add. Raises CommandError."""
    assert wish.principal is not None, "add needs a principal"
    principal = principal_text(wish.principal)
    return [
        Entry(
            principal=principal,
            permission=PERMISSION_NAMES[DENY if wish.deny else ALLOW],
            operation=operation,
            resource=resource,
            name=name,
            pattern=_pattern(wish, resource, name).name.lower(),
            host=host,
        )
        for (resource, name, operation), host in product(_permitted(wish), wish.hosts)
    ]


def filters_of(wish: Wish, *, everything: bool) -> list[EntryFilter]:
    """The filters of the entries to remove; `everything` must say so if all are meant.

    Raises CommandError.
    """
    is_kit = wish.producer or wish.consumer
    narrowed = (wish.principal, wish.resources, wish.operations, wish.hosts, wish.deny, is_kit)
    if not any(narrowed) and not everything:
        raise CommandError("name a principal, a resource or an operation, or give --all")
    if everything and any((*narrowed, wish.prefix)):
        raise CommandError("--all means all entries: give it alone, or leave it out")
    permission = DENY if wish.deny else ALLOW if is_kit else ANY
    principal = None if wish.principal is None else principal_text(wish.principal)
    hosts: Sequence[str | None] = wish.hosts or [None]
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
        for (resource, name, pattern, operation), host in product(_meant(wish, is_kit), hosts)
    ]


def _meant(
    wish: Wish, is_kit: bool
) -> Iterator[tuple[Resource | None, str | None, int, Operation | None]]:
    if is_kit:
        for resource, name, operation in _permitted(wish):
            yield resource, name, _pattern(wish, resource, name).value, operation
        return
    operations: Sequence[Operation | None] = wish.operations or [None]
    for asked in operations:
        for resource, name in wish.resources:
            yield resource, name, _pattern(wish, resource, name).value, asked
        if not wish.resources:
            yield None, None, Pattern.PREFIXED.value if wish.prefix else ANY, asked


def _pattern(wish: Wish, resource: Resource, name: str) -> Pattern:
    is_prefix = wish.prefix and resource is not Resource.CLUSTER and name != ALL_NAMES
    return Pattern.PREFIXED if is_prefix else Pattern.LITERAL


def _permitted(wish: Wish) -> list[tuple[Resource, str, Operation]]:
    """What the principal may do with each resource. Raises CommandError."""
    if wish.producer or wish.consumer:
        if wish.operations:
            raise CommandError("--producer and --consumer say which operations: drop --operation")
        return [*dict.fromkeys(_kit(wish))]
    if not wish.resources:
        raise CommandError("name a resource: --topic, --group, --cluster, --transactional-id, ...")
    if not wish.operations:
        raise CommandError("give --operation, or --producer or --consumer")
    permitted = [
        (resource, name, operation)
        for (resource, name), operation in product(wish.resources, wish.operations)
    ]
    for resource, _, operation in permitted:
        if operation is not Operation.ALL and operation not in SUPPORTED[resource]:
            possible = ", ".join((*SUPPORTED[resource], Operation.ALL))
            raise CommandError(f"a {resource} has no operation {operation}, only {possible}")
    return permitted


def _kit(wish: Wish) -> Iterator[tuple[Resource, str, Operation]]:
    """The operations of a producer and of a consumer. Kafka: AclCommand."""
    names: dict[Resource, list[str]] = {resource: [] for resource in Resource}
    for resource, name in wish.resources:
        names[resource].append(name)
    topics, groups = names[Resource.TOPIC], names[Resource.GROUP]
    if not topics or (wish.consumer and not groups):
        needed = "--topic and --group" if wish.consumer else "--topic"
        raise CommandError(f"--{'consumer' if wish.consumer else 'producer'} needs {needed}")
    if wish.producer:
        for operation in (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE):
            yield from ((Resource.TOPIC, name, operation) for name in topics)
        for operation in (Operation.WRITE, Operation.DESCRIBE):
            for name in names[Resource.TRANSACTIONAL_ID]:
                yield Resource.TRANSACTIONAL_ID, name, operation
        if wish.idempotent:
            yield Resource.CLUSTER, "kafka-cluster", Operation.IDEMPOTENT_WRITE
    if wish.consumer:
        for operation in (Operation.READ, Operation.DESCRIBE):
            yield from ((Resource.TOPIC, name, operation) for name in topics)
        yield from ((Resource.GROUP, name, Operation.READ) for name in groups)
