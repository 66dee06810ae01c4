"""The declarations of a .proto file, without its comments."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

# With the numbers that they have in descriptors.
SCALARS = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7,
    "bool": 8, "string": 9, "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16,
    "sint32": 17, "sint64": 18,
}  # fmt: skip
LABELS = {"optional": 1, "required": 2, "repeated": 3}
MAX_TAG = (1 << 29) - 1
MAX_ENUM = (1 << 31) - 1


class Symbol(str):
    """A word that is not quoted: the name of an enum's constant, or `inf`."""

    __slots__ = ()


class Literal(str):
    """A number, with the digits that the text has."""

    __slots__ = ()


# The value of an option: str (quoted), bool, Literal, Symbol, dict (a message), list, or Option.
Value = Any


class Range(NamedTuple):
    """Numbers from the first to the last one. `5 to 5` has an end, `5` has none."""

    first: int
    last: int
    has_end: bool = False


@dataclass(slots=True, kw_only=True)
class Option:
    name: str
    is_extension: bool = False  # its name is in parentheses
    value: Value = None  # an Option for `(name).inner = ...` and `(name).(inner) = ...`


@dataclass(slots=True, eq=False, kw_only=True)
class Field:
    name: str
    tag: int
    type: str  # a scalar, a name, or `map<string, Name>`
    label: str = ""
    options: list[Option] = field(default_factory=list)

    @property
    def is_map(self) -> bool:
        return self.type.startswith("map<")


def map_parts(of_type: str) -> tuple[str, str]:
    """Return the types of keys and values of `map<string, Name>`."""
    key, _, value = of_type.removeprefix("map<").removesuffix(">").partition(", ")
    return key, value


@dataclass(slots=True, eq=False, kw_only=True)
class Group:
    name: str
    tag: int
    label: str
    message: "Message"


@dataclass(slots=True, eq=False, kw_only=True)
class OneOf:
    name: str
    fields: list[Field] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class Constant:
    name: str
    tag: int
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class Enum:
    name: str
    constants: list[Constant] = field(default_factory=list)
    reserved: list[list[Range | str]] = field(default_factory=list)  # one list a statement
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class Extensions:
    ranges: list[Range]
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class Extend:
    name: str
    fields: list[Field] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class Message:
    name: str
    fields: list[Field] = field(default_factory=list)
    oneofs: list[OneOf] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    messages: list["Message"] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    reserved: list[list[Range | str]] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class Method:
    name: str
    request: str
    response: str
    is_request_stream: bool = False
    is_response_stream: bool = False
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class Service:
    name: str
    methods: list[Method] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True, eq=False, kw_only=True)
class File:
    syntax: str = ""
    edition: str = ""
    package: str = ""
    imports: list[str] = field(default_factory=list)
    public_imports: list[str] = field(default_factory=list)
    weak_imports: list[str] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
