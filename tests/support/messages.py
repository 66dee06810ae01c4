"""All messages that are declared, and values for them."""

import importlib
import os
import pkgutil
import struct
from collections.abc import Iterator
from functools import cache
from itertools import count
from types import ModuleType

import odradek.protocol.messages
import odradek.protocol.records
from odradek.protocol.declaration import ListOf, Wire, present_fields
from odradek.protocol.headers import read_request_header
from odradek.protocol.schema import Message, Struct, WireType

LONG = os.environ.get("ODRADEK_TEST_LENGTH") == "long"


@cache
def all_messages() -> tuple[type[Message], ...]:
    """Every message class of protocol.messages and protocol.records, by name; no base classes."""
    found = {
        made
        for package in (odradek.protocol.messages, odradek.protocol.records)
        for module in _modules(package)
        for made in vars(module).values()
        if isinstance(made, type) and issubclass(made, Message) and made is not Message
        if not made.__subclasses__()
    }
    return tuple(sorted(found, key=lambda made: made.__name__))


def _modules(package: ModuleType) -> list[ModuleType]:
    return [
        importlib.import_module(f"{package.__name__}.{info.name}")
        for info in pkgutil.iter_modules(package.__path__)
    ]


def versions_of(message: type[Message]) -> range:
    """Every version that the message is spoken in."""
    return range(message.SPEC.versions.lowest, message.SPEC.versions.highest + 1)


def layouts(message: type[Message]) -> list[int]:
    """The oldest version, the newest and the first flexible one; all if the tests may take long."""
    spoken = versions_of(message)
    wanted = {spoken[0], spoken[-1], message.SPEC.flexible.lowest}
    return [version for version in spoken if LONG or version in wanted]


def sample(message: type[Message], version: int) -> Message:
    """A value in which no field has its default, no list is empty, and nothing is null."""
    made = _sample_struct(message, version, count(1), 2)
    assert isinstance(made, Message)
    return made


def _sample_struct(
    declared: type[Struct], version: int, numbers: Iterator[int], items: int
) -> Struct:
    values = {
        field.name: _sample_value(field.wire, version, numbers, items)
        for field, _ in present_fields(declared, version)
    }
    return declared(**values)


def _sample_value(wire: Wire, version: int, numbers: Iterator[int], items: int) -> object:
    if isinstance(wire, ListOf):
        # Two items at the top, one inside them: the deep messages would be hundreds of kilobytes.
        return [_sample_value(wire.item, version, numbers, 1) for _ in range(items)]
    if isinstance(wire, type):
        return _sample_struct(wire, version, numbers, items)
    return _sample_primitive(wire, next(numbers))


def _sample_primitive(wire: WireType, number: int) -> object:
    match wire.name:
        case "bool":
            return True
        case "float64":
            return number + 0.5
        case "string":
            return f"täxt-{number}"
        case "bytes" | "records":
            return b"bytes-%d" % number
        case "uuid":
            return number.to_bytes(16, "big")
        case _:
            return number % 100 + 20  # fits every integer, and is no default


def smallest(message: type[Message], version: int) -> Message:
    """A value with nulls where they may be, else with zeros and with nothing in any list."""
    made = _smallest_struct(message, version, with_nulls=True)
    assert isinstance(made, Message)
    return made


def emptiest(message: type[Message], version: int) -> Message:
    """A value of zeros, with nothing in any list, and with no null: most often of defaults."""
    made = _smallest_struct(message, version, with_nulls=False)
    assert isinstance(made, Message)
    return made


def _smallest_struct(declared: type[Struct], version: int, *, with_nulls: bool) -> Struct:
    values: dict[str, object] = {}
    for field, _ in present_fields(declared, version):
        if with_nulls and version in field.nullable:
            values[field.name] = None
        elif isinstance(field.wire, ListOf):
            values[field.name] = []
        elif isinstance(field.wire, type):
            values[field.name] = _smallest_struct(field.wire, version, with_nulls=with_nulls)
        else:
            values[field.name] = field.wire.zero
    return declared(**values)


def has_tags_in_header(key: int, version: int) -> bool:
    """Whether the header of such a request is read with tagged fields at its end."""
    header = struct.pack(">hhih", key, version, 7, -1)
    _, end = read_request_header(memoryview(header + b"\0"))
    return end > len(header)
