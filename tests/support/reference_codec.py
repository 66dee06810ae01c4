"""A second writer of messages: slow, plain, and it knows where it wrote each length.

It shares the declarations with the compiled writers, but none of their ideas: one function per wire
type, no source is generated, nothing is fused. Equal bytes are evidence; and the places of the
lengths are what hostile_bytes.py lies about.
"""

import struct
from typing import NamedTuple

from odradek.protocol.declaration import Field, ListOf, Wire, present_fields
from odradek.protocol.schema import Message, Struct, WireType

CODES = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}


class Length(NamedTuple):
    """Where a length, count or size stands, and in which form: `h`, `i` or `varint`."""

    position: int
    size: int
    form: str


class ReferenceWriter:
    """Writes one message of one version."""

    def __init__(self, message: Message, version: int) -> None:
        self.out = bytearray()
        self.lengths: list[Length] = []
        self._version = version
        self._flexible = version in type(message).SPEC.flexible
        self._struct(message)

    def _struct(self, value: Struct) -> None:
        tags: dict[int, Field] = {}
        for field, tag in present_fields(type(value), self._version):
            if tag is None:
                self._value(field.wire, getattr(value, field.name), field)
            elif getattr(value, field.name) != field.default:
                tags[tag] = field
        if self._flexible:
            self._length(len(tags), "varint")
            for number in sorted(tags):
                self._tag(number, tags[number], getattr(value, tags[number].name))

    def _tag(self, number: int, field: Field, value: object) -> None:
        self._varint(number)
        start = len(self.out)
        known = len(self.lengths)
        self._value(field.wire, value, field, in_tag=True)
        content = self.out[start:]
        del self.out[start:]
        before = len(self.out)
        self._varint(len(content))
        moved = len(self.out) - before
        self.lengths[known:] = [
            each._replace(position=each.position + moved) for each in self.lengths[known:]
        ]
        self.lengths.insert(known, Length(before, moved, "varint"))
        self.out += content

    def _value(self, wire: Wire, value: object, field: Field, *, in_tag: bool = False) -> None:
        if isinstance(wire, type):
            if self._version in field.nullable:
                null = 0 if in_tag else 255
                self.out.append(null if value is None else 1)
            if isinstance(value, Struct):
                self._struct(value)
        elif isinstance(wire, ListOf):
            self._array(wire, value)
        else:
            self._primitive(wire, value)

    def _array(self, wire: ListOf, value: object) -> None:
        if not isinstance(value, list):
            self._sized(None, "i")
            return
        self._sized(len(value), "i")
        for item in value:
            if isinstance(item, Struct):
                self._struct(item)
            elif isinstance(wire.item, WireType):
                self._primitive(wire.item, item)

    def _primitive(self, wire: WireType, value: object) -> None:
        code = CODES.get(wire.name)
        if code is not None:
            self.out += struct.pack(">" + code, value)
            return
        content = value.encode() if isinstance(value, str) else value
        form = "h" if wire.name == "string" else "i"
        self._sized(len(content) if isinstance(content, bytes) else None, form)
        if isinstance(content, bytes):
            self.out += content

    def _sized(self, length: int | None, form: str) -> None:
        if self._flexible:
            self._length(0 if length is None else length + 1, "varint")
        else:
            self._length(-1 if length is None else length, form)

    def _length(self, number: int, form: str) -> None:
        position = len(self.out)
        if form == "varint":
            self._varint(number)
        else:
            self.out += struct.pack(">" + form, number)
        self.lengths.append(Length(position, len(self.out) - position, form))

    def _varint(self, number: int) -> None:
        while number >= 128:
            self.out.append(number % 128 + 128)
            number //= 128
        self.out.append(number)
