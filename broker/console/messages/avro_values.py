"""Reads Avro values whose schemas and bytes may come from anybody.

Few bytes can say much: a thousand million nulls, or a record in a record in a record. fastavro's
reader believes them, and is C: it holds up the event loop, and its recursion ends the process. So
this one counts. It gives way after each item, and refuses what has too many or is nested too
deeply. The values are those of fastavro, which reads the logical types here too.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from odradek.coordinator.runtime.steps import Step

MAX_ITEMS = 10_000
MAX_DEPTH = 64
# Of the names of fields and symbols, which need not stand in the bytes.
MAX_NAME_LETTERS = 1 << 20
# The number of a larger decimal is not computed, which takes seconds. A longer value is no decimal.
_MAX_LOGICAL_BYTES = 256
_MAX_VARINT_BITS = 64
_PRIMITIVES = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
)
_KINDS = _PRIMITIVES | {"record", "enum", "fixed", "array", "map"}


class Shape:
    """A schema. `inner` are those of fields, of branches, or of items."""

    __slots__ = ("inner", "kind", "logical", "names", "schema", "size")

    def __init__(self, kind: str, schema: Any) -> None:
        self.kind = kind
        self.schema = schema
        self.inner: list[Shape] = []
        self.names: Sequence[str] = ()  # of fields or symbols
        self.size = 0  # of a `fixed`
        self.logical: Callable[..., Any] | None = None


def shape_of(schema: Any) -> Shape:
    """The shape of a schema, as parsed JSON. Raises ValueError, and what Python raises."""
    return _shape_of(schema, "", {})


def _shape_of(schema: Any, namespace: str, named: dict[str, Shape]) -> Shape:
    if isinstance(schema, list):
        union = Shape("union", schema)
        union.inner = [_shape_of(branch, namespace, named) for branch in schema]
        return union
    if isinstance(schema, str):
        return _named(schema, namespace, named)
    kind = schema["type"]
    if kind == "error":
        kind = "record"
    if not isinstance(kind, str) or kind not in _KINDS:
        return _shape_of(kind, namespace, named)
    shape = Shape(kind, schema)
    if kind in ("record", "enum", "fixed"):
        full_name = _full_name(schema["name"], schema.get("namespace", namespace))
        namespace = full_name.rpartition(".")[0]
        named[full_name] = shape
        shape.names = schema.get("symbols", ())
        shape.size = schema.get("size", 0)
    if kind == "record":
        shape.names = [field["name"] for field in schema["fields"]]
        shape.inner = [_shape_of(field["type"], namespace, named) for field in schema["fields"]]
    elif kind in ("array", "map"):
        items = schema["items" if kind == "array" else "values"]
        shape.inner = [_shape_of(items, namespace, named)]
    if "logicalType" in schema:
        from fastavro.read import LOGICAL_READERS  # comes with odradek[registry]

        shape.logical = LOGICAL_READERS.get(f"{kind}-{schema['logicalType']}")
    return shape


def _named(name: str, namespace: str, named: dict[str, Shape]) -> Shape:
    if name in _PRIMITIVES:
        return Shape(name, name)
    found = named.get(_full_name(name, namespace)) or named.get(name)
    if found is None:
        raise ValueError(f"there is no type {name}")
    return found


def _full_name(name: str, namespace: str | None) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def read_value(shape: Shape, data: bytes, step: Step) -> Any:
    """The value that is all of `data`. Calls `step` before each item. Raises ValueError."""
    reader = _Reader(data, step)
    value = reader.value(shape, 0)
    if reader.position != len(data):
        raise ValueError(f"{len(data) - reader.position} bytes follow the value")
    return value


class _Reader:
    def __init__(self, data: bytes, step: Step) -> None:
        self.position = 0
        self._data = data
        self._step = step
        self._items = 0
        self._name_letters = 0

    def value(self, shape: Shape, depth: int) -> Any:
        """The next value. Its recursion is Python's own, and has a limit."""
        self._items += 1
        if self._items > MAX_ITEMS:
            raise ValueError(f"it has more than {MAX_ITEMS} items")
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
        self._step()
        kind = shape.kind
        if kind == "record":
            self._count(shape.names)
            fields = zip(shape.names, shape.inner, strict=True)
            return {name: self.value(field, depth + 1) for name, field in fields}
        if kind == "union":
            return self.value(_at(shape.inner, self._long(), "branch"), depth + 1)
        if kind == "array":
            return [self.value(shape.inner[0], depth + 1) for _ in self._blocks()]
        if kind == "map":
            pairs = ((self._text(), self.value(shape.inner[0], depth + 1)) for _ in self._blocks())
            return dict(pairs)
        begin = self.position
        value = self._plain(shape)
        if shape.logical is not None and self.position - begin <= _MAX_LOGICAL_BYTES:
            return shape.logical(value, shape.schema, None)
        return value

    def _plain(self, shape: Shape) -> Any:
        kind = shape.kind
        if kind == "null":
            return None
        if kind == "boolean":
            return self._bytes(1) != b"\0"
        if kind in ("int", "long"):
            return self._long()
        if kind == "float":
            return struct.unpack("<f", self._bytes(4))[0]
        if kind == "double":
            return struct.unpack("<d", self._bytes(8))[0]
        if kind == "string":
            return self._text()
        if kind == "enum":
            symbol: str = _at(shape.names, self._long(), "symbol")
            self._count([symbol])
            return symbol
        return self._bytes(shape.size if kind == "fixed" else self._long())

    def _count(self, names: Sequence[str]) -> None:
        self._name_letters += sum(map(len, names))
        if self._name_letters > MAX_NAME_LETTERS:
            raise ValueError(f"its names have more than {MAX_NAME_LETTERS} letters")

    def _blocks(self) -> Iterator[None]:
        """One None for each item of an array or a map."""
        while count := self._long():
            if count < 0:
                self._long()  # the size of the block
            for _ in range(abs(count)):
                yield

    def _text(self) -> str:
        return self._bytes(self._long()).decode()

    def _bytes(self, size: int) -> bytes:
        begin, self.position = self.position, self.position + size
        if not begin <= self.position <= len(self._data):
            raise ValueError(f"{size} bytes do not fit the {len(self._data) - begin} that are left")
        return self._data[begin : self.position]

    def _long(self) -> int:
        value = 0
        for shift in range(0, _MAX_VARINT_BITS, 7):
            (byte,) = self._bytes(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise ValueError("a number has more than 64 bits")


def _at(items: Sequence[Any], index: int, what: str) -> Any:
    if not 0 <= index < len(items):
        raise ValueError(f"there is no {what} {index}")
    return items[index]
