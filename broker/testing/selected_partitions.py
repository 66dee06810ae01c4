"""Splits requests and responses by topics and partitions, and merges responses.

The messages of all APIs are alike in this: they have lists of topics, and these have lists of
partitions. Their declarations say where. A topic is an item whose class is called so; its name or
its id, and the index of a partition, have one of a few names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import msgspec

from odradek.broker.requests.error_responses import has_error
from odradek.protocol.declaration import ListOf, fields_of, present_fields
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.schema import Struct, WireType, replace

INDEXES = ("partition_index", "partition", "index", "partition_id")
TOPICS = ("topic", "topic_name", "name")
NAMES = (*TOPICS, "topic_id", "group_id", "transactional_id", "producer_id", *INDEXES)


class Selector(NamedTuple):
    """Chooses partitions by topic and index; None: any. `find_name`: of a topic id."""

    topic: str | None
    partition: int | None
    find_name: Callable[[bytes], str | None]

    def split(self, whole: Any, *, is_topic: bool = False) -> tuple[Any, Any]:
        """What is chosen of a message or of a part of it, and the rest. None: nothing."""
        chosen: dict[str, list[Any]] = {}
        rest: dict[str, list[Any]] = {}
        for name in _lists_of(whole):
            pairs = [
                self._split_partition(item) if is_topic else self._split_item(item)
                for item in getattr(whole, name) or ()
            ]
            chosen[name] = [pair[0] for pair in pairs if pair[0] is not None]
            if chosen[name]:
                rest[name] = [pair[1] for pair in pairs if pair[1] is not None]
        if not rest:
            return None, whole
        return replace(whole, **chosen), replace(whole, **rest) if any(rest.values()) else None

    def _split_item(self, item: Any) -> tuple[Any, Any]:
        """Split an item of a list that is not in a topic."""
        if isinstance(item, str):
            return (item, None) if self.topic in (None, item) else (None, item)
        if not isinstance(item, Struct):
            return None, item
        if not _is_topic(type(item)):
            return self.split(item)
        if self.topic is not None and self.topic != self._name(item):
            return None, item
        if self.partition is not None and _has_partitions(type(item)):
            return self.split(item, is_topic=True)
        if hasattr(item, "error_code"):  # the error is the topic's, not that of its partitions
            return replace(item, **{name: [] for name in _lists_of(item)}), None
        return item, None

    def _split_partition(self, item: Any) -> tuple[Any, Any]:
        index = next((getattr(item, name) for name in INDEXES if hasattr(item, name)), item)
        return (item, None) if index == self.partition else (None, item)

    def _name(self, item: Any) -> str | None:
        topic_id = getattr(item, "topic_id", ZERO_UUID)
        if topic_id != ZERO_UUID:
            return self.find_name(topic_id)
        return next((getattr(item, name) for name in TOPICS if hasattr(item, name)), None)


def merged(response: Any, errors: Any, version: int) -> Any:
    """The response with the items of `errors`, in place of its own that have the same names."""
    changes = {}
    for name in _lists_of(errors):
        items = list(getattr(response, name) or ())
        places = {_names(item, version): place for place, item in enumerate(items)}
        for item in getattr(errors, name):
            place = places.setdefault(_names(item, version), len(items))
            if place == len(items):
                items.append(item)
            elif any(getattr(item, inner) for inner in _lists_of(item)):
                items[place] = merged(items[place], item, version)
            else:
                items[place] = item
        if getattr(errors, name):
            changes[name] = items
    return replace(response, **changes)


def _names(item: Any, version: int) -> tuple[object, ...]:
    declared: type = type(item)
    return tuple(getattr(item, name) for name in _name_fields(declared, version))


@cache
def _name_fields(declared: type[Struct], version: int) -> tuple[str, ...]:
    return tuple(
        field.name for field, _ in present_fields(declared, version) if field.name in NAMES
    )


@cache
def has_topic_error(declared: type[Struct], version: int) -> bool:
    """Whether a response has a place for the error of a topic, or of its partitions."""
    return any(
        (_is_topic(item) and has_error(item, version)) or has_topic_error(item, version)
        for field, _ in present_fields(declared, version)
        if isinstance(field.wire, ListOf) and not isinstance(item := field.wire.item, WireType)
    )


def _lists_of(part: Any) -> tuple[str, ...]:
    declared: type = type(part)
    return _lists(declared)


@cache
def _lists(declared: type[msgspec.Struct]) -> tuple[str, ...]:
    """The lists of a struct in which topics and partitions may be."""
    return tuple(
        field.name
        for field in fields_of(declared)
        if isinstance(field.wire, ListOf)
        and "forgotten" not in field.name
        and (
            not isinstance(field.wire.item, WireType)
            or "topic" in field.name
            or field.name.startswith("partition")
        )
    )


def _is_topic(declared: type) -> bool:
    return "Topic" in declared.__name__


@cache
def _has_partitions(declared: type[msgspec.Struct]) -> bool:
    """Whether a topic has a list of partitions, or of their indexes."""
    wires = [field.wire for field in fields_of(declared) if field.name in _lists(declared)]
    return any(
        isinstance(wire, ListOf)
        and (
            isinstance(wire.item, WireType)
            or any(field.name in INDEXES for field in fields_of(wire.item))
        )
        for wire in wires
    )
