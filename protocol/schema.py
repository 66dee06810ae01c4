"""Declares Kafka messages: one class per message, for all its versions.

    class HeartbeatRequest(Message, key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
        group_id: String
        generation_id: Int32
        member_id: String
        group_instance_id: Annotated[String | None, since(3)] = None

A field's annotation has the content of Kafka's JSON definition:

- the wire type (`String`)
- the versions that have the field (`since`, `until`, `between`; default: every version)
- whether it may be null (`| None`; `null_since` if it may be null only from a later version on)
- whether it is a tagged field (`tagged`)
- whether a writer may drop its value in a version without the field (`IGNORABLE`)

A field that is missing in some version has a default; readers of that version return it. A list of
structs is `list[Inner]`, a nested struct is `Inner`.

For mypy a field is a plain `str | None`. The readers and the writer are compiled for each version
at first use (compiler.py). The classes are msgspec structs: frozen, keyword-only, and not tracked
by the garbage collector. That matters because a Produce of six partitions creates fourteen of them.
"""

from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeVar,
    dataclass_transform,
)

import msgspec

from .api_keys import ApiKey
from .primitives import ZERO_UUID

if TYPE_CHECKING:
    from .compiler import Codec

INT16_MAX = 0x7FFF


class WireType(NamedTuple):
    """A primitive type: its name in Kafka's JSON, and its `struct` code if its size is fixed."""

    name: str
    struct_code: str = ""
    size: int = 0
    zero: object = 0


Bool = Annotated[bool, WireType("bool", "?", 1, False)]
Int8 = Annotated[int, WireType("int8", "b", 1)]
Int16 = Annotated[int, WireType("int16", "h", 2)]
Uint16 = Annotated[int, WireType("uint16", "H", 2)]
Int32 = Annotated[int, WireType("int32", "i", 4)]
Int64 = Annotated[int, WireType("int64", "q", 8)]
Float64 = Annotated[float, WireType("float64", "d", 8, 0.0)]
Uuid = Annotated[bytes, WireType("uuid", "16s", 16, ZERO_UUID)]
String = Annotated[str, WireType("string", zero="")]
Bytes = Annotated[bytes, WireType("bytes", zero=b"")]


class SplicedRecords:
    """Record bytes in a file. A response contains their size; the connection sends the bytes.

    The only subclass is storage.slices.RecordsSlice; the protocol needs only the size.
    """

    __slots__ = ("size_bytes",)

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes


# Positions in the bytes of a response at which records from files are inserted.
Splices = list[tuple[int, SplicedRecords]]

# The only borrowed bytes in a message: a view of the connection's buffer, which is reused after the
# first await.
Records = Annotated[memoryview | bytes | SplicedRecords, WireType("records", zero=b"")]


class VersionRange(NamedTuple):
    """An inclusive range of versions; empty when lowest > highest."""

    lowest: int
    highest: int

    @classmethod
    def parse(cls, text: str) -> "VersionRange":
        """Read Kafka's spelling: `4-18`, `3+`, `0`, `none`."""
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(int(text[:-1]), INT16_MAX)
        lowest, _, highest = text.partition("-")
        return cls(int(lowest), int(highest or lowest))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def __str__(self) -> str:
        return f"{self.lowest}-{self.highest}" if self.lowest <= self.highest else "none"


NO_VERSIONS = VersionRange(0, -1)
ALL_VERSIONS = VersionRange(0, INT16_MAX)


class Tag(NamedTuple):
    """The number of a tagged field, and the versions in which it is tagged."""

    number: int
    versions: VersionRange


class NullSince(NamedTuple):
    """The first version in which a field may be null."""

    version: int


class Ignorable(NamedTuple):
    """A writer may drop the field's value in a version that does not have the field."""


IGNORABLE = Ignorable()


def since(version: int) -> VersionRange:
    """The field exists from `version` on."""
    return VersionRange(version, INT16_MAX)


def until(version: int) -> VersionRange:
    """The field exists up to and including `version`."""
    return VersionRange(0, version)


def between(first: int, last: int) -> VersionRange:
    """The field exists from `first` to `last`, both inclusive."""
    return VersionRange(first, last)


def tagged(number: int, *, since: int = 0) -> Tag:
    """The field is tagged field `number`, in all flexible versions or `since` a later one."""
    return Tag(number, VersionRange(since, INT16_MAX))


def null_since(version: int) -> NullSince:
    """The field may be null only from `version` on, although it exists in earlier ones."""
    return NullSince(version)


class MessageSpec(NamedTuple):
    """The class-level properties of a message: see Message."""

    key: ApiKey | None
    versions: VersionRange
    flexible: VersionRange
    advertised: VersionRange


class StructMeta(type):
    """Turns class statements into msgspec structs: frozen, keyword-only, without GC tracking.

    Its only instances are `Struct` and `Message`. They are names to inherit from: a class that
    names one of them as its base gets the msgspec struct in its `plain` instead. So the declared
    classes have msgspec's own metaclass. This matters for speed: CPython 3.11 packs the arguments
    into a dict when it calls a class whose metaclass is written in Python, which makes creating a
    struct four times as expensive.
    """

    plain: type[msgspec.Struct]

    def __new__(  # the keywords of a class statement
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        key: ApiKey | None = None,
        versions: str | None = None,
        flexible: str = "none",
        advertised: str | None = None,
    ) -> Any:
        plain = tuple(base.plain if isinstance(base, StructMeta) else base for base in bases)
        made: Any = msgspec.StructMeta(
            name, plain, namespace, frozen=True, kw_only=True, gc=False, weakref=False
        )
        if versions is not None:
            supported = VersionRange.parse(versions)
            made.SPEC = MessageSpec(
                key,
                supported,
                VersionRange.parse(flexible),
                VersionRange.parse(advertised) if advertised else supported,
            )
        return made

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.plain)

    def __subclasscheck__(cls, declared: type) -> bool:
        return declared is cls or issubclass(declared, cls.plain)


def _base_of(plain: Any) -> Any:
    """Make a name to inherit from. A class statement with it takes the keywords of StructMeta."""
    return type.__new__(StructMeta, plain.__name__, (), {"plain": plain, "__doc__": plain.__doc__})


if TYPE_CHECKING:
    # If type checkers knew the base msgspec.Struct, they would apply its rules: positional and
    # mutable fields. So they see a class without that base.
    @dataclass_transform(kw_only_default=True, frozen_default=True)
    class Struct(metaclass=StructMeta):
        """A part of a message."""

    _S = TypeVar("_S", bound=Struct)

    def replace(struct: _S, /, **changes: Any) -> _S:
        """Return a copy with other values of some fields. (It is `msgspec.structs.replace`.)"""

else:
    Struct = _base_of(msgspec.Struct)
    replace = msgspec.structs.replace


class Message(Struct):
    """A whole message: a request, a response, or a record's key or value.

    Keywords of the class statement: `key` (the API, for requests and responses), `versions` (the
    supported ones), `flexible` (those with compact lengths and tagged fields), `advertised` (those
    that ApiVersions announces; default: `versions`).
    """

    SPEC: ClassVar[MessageSpec]

    @classmethod
    def decode(cls, data: bytes | memoryview, version: int, position: int = 0) -> Self:
        """Decode the message in `data` at `position`. Bytes after it are ignored, as in Kafka.

        Raises DecodeError, which names message, version, field and byte.
        """
        message: Self = codec_for(cls, version).decode(data, position)[0]
        return message

    def encode(self, version: int) -> bytes:
        """The message's bytes. Raises EncodeError if the version has no field for a value.

        Raises DecodeError, as `decode` does, if the message does not have this version.
        """
        return bytes(codec_for(type(self), version).encode(self))


if not TYPE_CHECKING:
    Message = _base_of(Message)


class DecodeError(Exception):
    """Bytes are not a valid message."""


class EncodeError(Exception):
    """A value cannot be encoded in this version of the message."""


@cache
def codec_for(message: type[Message], version: int) -> "Codec":
    """The compiled readers and writer of one version, made at first use.

    Raises DecodeError if the message does not have this version.
    """
    from .compiler import Codec  # here, so that declaring a message does not load the compiler

    if version not in message.SPEC.versions:
        raise DecodeError(f"{message.__name__} has versions {message.SPEC.versions}, not {version}")
    return Codec(message, version)
