"""How a Kafka message is declared: one class per message, for all versions.

    class HeartbeatRequest(Message, key=ApiKey.HEARTBEAT, versions="0-4", flexible="4+"):
        group_id: String
        generation_id: Int32
        member_id: String
        group_instance_id: Annotated[String | None, since(3)] = None

A field's annotation says what Kafka's JSON definition says: the wire type (`String`), since which
version (`since`, `until`, `between`; without one: in every version), whether it may be null
(`| None`; `null_since` where that begins later than the field), whether it travels as a tagged
field (`tagged`), and whether a writer may drop it where the version has no place for it
(`IGNORABLE`). A field that some version lacks has a default, which is then what a reader sees.
A list of structs is `list[Inner]`, an inner struct just `Inner`.

mypy sees plain `str | None`. Reader and writer are compiled per version at first use (compiler.py).
The classes are msgspec structs, frozen, keyword-only, invisible to the garbage collector: a Produce
of six partitions builds fourteen of them.
"""

from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    dataclass_transform,
)

import msgspec

from .api_keys import ApiKey
from .primitives import ZERO_UUID

if TYPE_CHECKING:
    from .compiler import Codec

INT16_MAX = 0x7FFF


class WireType(NamedTuple):
    """A primitive of the wire: its name in Kafka's JSON, its `struct` code where it is fixed."""

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
    """Record bytes that lie in a file: a response carries their size, the connection sends them.

    storage.log.RecordsSlice is the one kind there is; the protocol only needs to know the size.
    """

    __slots__ = ("size_bytes",)

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes


# Where in a response's bytes the records belong that lie in files.
Splices = list[tuple[int, SplicedRecords]]

# The only borrowed bytes of a message: a view on the connection's buffer, dead at the first await.
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
    """The number under which a field travels, and in which versions it does."""

    number: int
    versions: VersionRange


class NullSince(NamedTuple):
    """The first version in which a field may be null."""

    version: int


class Ignorable(NamedTuple):
    """A writer may drop the field where the version has no place for it."""


IGNORABLE = Ignorable()


def since(version: int) -> VersionRange:
    """The field exists from `version` on."""
    return VersionRange(version, INT16_MAX)


def until(version: int) -> VersionRange:
    """The field exists up to and including `version`."""
    return VersionRange(0, version)


def between(first: int, last: int) -> VersionRange:
    """The field exists from `first` to `last`, both included."""
    return VersionRange(first, last)


def tagged(number: int, *, since: int = 0) -> Tag:
    """The field is tagged field `number`, in all flexible versions or `since` a later one."""
    return Tag(number, VersionRange(since, INT16_MAX))


def null_since(version: int) -> NullSince:
    """The field may be null only from `version` on, later than it exists."""
    return NullSince(version)


class MessageSpec(NamedTuple):
    """What is known of a message as a whole."""

    key: ApiKey | None
    versions: VersionRange
    flexible: VersionRange
    advertised: VersionRange


class StructMeta(type):
    """Turns class statements into msgspec structs: frozen, keyword-only, unknown to the collector.

    Its only instances are the names `Struct` and `Message`, which stand in class statements for the
    structs they are `base_of`. What a declaration gives has msgspec's own metaclass: CPython 3.11
    cannot call a class of a metaclass written in Python without packing its arguments into a dict,
    which makes every struct four times as expensive.
    """

    plain: type[msgspec.Struct]

    def __new__(  # these are the words of a declaration
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
            spoken = VersionRange.parse(versions)
            made.SPEC = MessageSpec(
                key,
                spoken,
                VersionRange.parse(flexible),
                VersionRange.parse(advertised) if advertised else spoken,
            )
        return made

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.plain)

    def __subclasscheck__(cls, declared: type) -> bool:
        return declared is cls or issubclass(declared, cls.plain)


def _base_of(plain: Any) -> Any:
    """The name by which a struct is inherited from, with the words that StructMeta understands."""
    return type.__new__(StructMeta, plain.__name__, (), {"plain": plain, "__doc__": plain.__doc__})


if TYPE_CHECKING:
    # Type checkers take the rules of msgspec.Struct before ours: its fields are positional and may
    # be assigned. So they are told of no base.
    @dataclass_transform(kw_only_default=True, frozen_default=True)
    class Struct(metaclass=StructMeta):
        """A part of a message."""

else:
    Struct = _base_of(msgspec.Struct)


class Message(Struct):
    """A whole message: a request, a response, or a record's key or value.

    The class words: `key` (the API, for requests and responses), `versions` (which we speak),
    `flexible` (from which on lengths are compact and tagged fields exist), `advertised` (which
    ApiVersions announces, where that is not `versions`).
    """

    SPEC: ClassVar[MessageSpec]

    @classmethod
    def decode(cls, data: bytes | memoryview, version: int, position: int = 0) -> Self:
        """The message that lies in `data` at `position`; what follows it is ignored, as in Kafka.

        Raises DecodeError, which names message, version, field and byte.
        """
        message: Self = codec_for(cls, version).decode(data, position)[0]
        return message

    def encode(self, version: int) -> bytes:
        """The message's bytes. Raises EncodeError where the version cannot carry a value."""
        return bytes(codec_for(type(self), version).encode(self))


if not TYPE_CHECKING:
    Message = _base_of(Message)


class DecodeError(Exception):
    """Bytes that are not the message they claim to be."""


class EncodeError(Exception):
    """A value that this version of the message cannot carry."""


@cache
def codec_for(message: type[Message], version: int) -> "Codec":
    """The compiled reader and writer of one version, made at first use.

    Raises DecodeError when the message has no such version.
    """
    from .compiler import Codec  # here, so that declaring a message loads no compiler

    if version not in message.SPEC.versions:
        raise DecodeError(f"{message.__name__} has versions {message.SPEC.versions}, not {version}")
    return Codec(message, version)
