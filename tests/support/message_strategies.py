"""Hypothesis strategies for values of messages, from their declarations."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from odradek.protocol.declaration import ListOf, Wire, present_fields
from odradek.protocol.schema import Message, Struct, WireType

from .messages import LONG

# The short run is the same every time, and no machine is too slow for it.
EXAMPLES = settings(
    max_examples=100 if LONG else 3,
    derandomize=not LONG,
    deadline=None,
)

Limits = Callable[[str, WireType], st.SearchStrategy[object] | None]

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_BYTES = st.binary(max_size=200)
_PRIMITIVES: dict[str, st.SearchStrategy[object]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": _TEXT,
    "bytes": _BYTES,
    "records": _BYTES,
}


def _no_limits(name: str, wire: WireType) -> None:
    return None


def messages(
    message: type[Message], version: int, limits: Limits = _no_limits
) -> st.SearchStrategy[Message]:
    """Any value that this version can carry; `limits` may narrow a field by its name."""
    return _structs(message, version, limits)


def _structs(declared: type[Struct], version: int, limits: Limits) -> st.SearchStrategy[Any]:
    fields = {}
    for field, _ in present_fields(declared, version):
        values = _values(field.name, field.wire, version, limits)
        fields[field.name] = st.none() | values if version in field.nullable else values
    return st.builds(declared, **fields)


def _values(name: str, wire: Wire, version: int, limits: Limits) -> st.SearchStrategy[object]:
    if isinstance(wire, ListOf):
        return st.lists(_values(name, wire.item, version, limits), max_size=3)
    if isinstance(wire, type):
        return _structs(wire, version, limits)
    limited = limits(name, wire)
    return _PRIMITIVES[wire.name] if limited is None else limited
