"""Requests with one long array, for each array of each request that the broker serves."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from odradek.protocol.declaration import Field, ListOf, Wire, present_fields
from odradek.protocol.schema import Message, Struct, WireType

TOPIC = "topic"
GROUP = "group"
KINDS = ("equal", "different", "empty")

# What exists in the broker, by the name of a field. Numbers and booleans are zero otherwise.
KNOWN: Mapping[str, object] = {
    **dict.fromkeys(
        ["name", "topic", "topic_name", "topics", "topic_names", "resource_name"], TOPIC
    ),
    **dict.fromkeys(["group_id", "groups", "groups_names", "group_ids", "group"], GROUP),
    **dict.fromkeys(["key", "coordinator_keys"], GROUP),
    **dict.fromkeys(["transactional_id", "transactional_ids"], "transactional"),
    "resource_type": 2,
    "resource_type_filter": 2,
    "pattern_type": 3,
    "pattern_type_filter": 3,
    "resource_pattern_type": 3,
    "operation": 3,
    "permission_type": 3,
    "principal": "User:a",
    "host": "*",
    "acks": 1,
    "timeout_ms": 1000,
    "num_partitions": 1,
    "replication_factor": 1,
    "validate_only": True,
    "isolation_level": 0,
    "replica_id": -1,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 10,
    "committed_offset": 1,
    "timestamp": -1,
    "current_leader_epoch": -1,
    "session_epoch": -1,
    "entity_type": "client-id",
    "rebalance_timeout_ms": 10,
    "session_timeout_ms": 1000,
    "protocol_type": "consumer",
    "member_epoch": 0,
    "share_session_epoch": 0,
}


class LongRequest(NamedTuple):
    """A request, by the path of its long array.

    `make` takes its approximate size in bytes, and the largest number of items.
    """

    path: str
    kind: str
    make: Callable[[int, float], Message]


def long_requests(message: type[Message], version: int) -> Iterator[LongRequest]:
    """One for each array of the message and each kind."""
    for path in array_paths(message, version):
        for kind in KINDS:
            yield LongRequest(".".join(path), kind, _maker(message, version, path, kind))


def array_paths(declared: type[Struct], version: int) -> Iterator[tuple[str, ...]]:
    """The paths of all arrays, as names of fields."""
    for field, _ in present_fields(declared, version):
        inner = field.wire.item if isinstance(field.wire, ListOf) else field.wire
        if isinstance(field.wire, ListOf):
            yield (field.name,)
        if isinstance(inner, type):
            for rest in array_paths(inner, version):
                yield (field.name, *rest)


def _maker(
    message: type[Message], version: int, path: tuple[str, ...], kind: str
) -> Callable[[int, float], Message]:
    def make(size_bytes: int, max_items: float) -> Message:
        def of(count: int) -> Message:
            made = _struct(message, version, path, kind, count, 0)
            assert isinstance(made, Message)
            return made

        one, some = (len(of(count).encode(version)) for count in (1, 101))
        count = size_bytes / max((some - one) / 100, 0.25)
        return of(max(1, int(min(count, max_items))))

    return make


def _struct(
    declared: type[Struct], version: int, path: tuple[str, ...], kind: str, count: int, number: int
) -> Struct:
    values: dict[str, Any] = {}
    for field, _ in present_fields(declared, version):
        on_path = bool(path) and field.name == path[0]
        rest = path[1:] if on_path else ()
        values[field.name] = _value(field, version, rest, kind, count, number, on_path=on_path)
    return declared(**values)


def _value(
    field: Field,
    version: int,
    rest: tuple[str, ...],
    kind: str,
    count: int,
    number: int,
    *,
    on_path: bool,
) -> Any:
    wire = field.wire
    if not isinstance(wire, ListOf):
        if isinstance(wire, type):
            if not on_path and version in field.nullable:
                return None
            return _struct(wire, version, rest, kind, count, number)
        if version in field.nullable and field.name not in KNOWN:
            return None
        return _leaf(wire, field.name, "known" if not number else kind, number)
    if not on_path:
        return []
    if rest:  # the long array is further inside
        return [_item(wire.item, field.name, version, rest, "known", count, 0, inner_kind=kind)]
    if kind == "different":
        return [
            _item(wire.item, field.name, version, (), kind, 0, index + 1) for index in range(count)
        ]
    return [_item(wire.item, field.name, version, (), kind, 0, 1)] * count


def _item(
    wire: Wire,
    name: str,
    version: int,
    rest: tuple[str, ...],
    kind: str,
    count: int,
    number: int,
    inner_kind: str | None = None,
) -> Any:
    if isinstance(wire, WireType):
        return _leaf(wire, name, kind, number)
    assert isinstance(wire, type)
    return _struct(wire, version, rest, inner_kind or kind, count, number)


def _leaf(wire: WireType, name: str, kind: str, number: int) -> Any:
    known = KNOWN.get(name)
    if kind == "empty":
        return wire.zero
    if kind == "different":
        match wire.name:
            case "string":
                return f"n{number}"
            case "uuid":
                return number.to_bytes(16, "big")
            case "int32" | "int64":
                return number
    is_of_type = isinstance(known, str) == (wire.name == "string")
    return known if known is not None and is_of_type else wire.zero
