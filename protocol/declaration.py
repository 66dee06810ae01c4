"""Reads the declaration of a struct: its fields, in the order in which they are encoded."""

import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import msgspec

from .schema import (
    ALL_VERSIONS,
    NO_VERSIONS,
    Ignorable,
    NullSince,
    Struct,
    Tag,
    VersionRange,
    WireType,
)


class ListOf(NamedTuple):
    """An array of a primitive or of a struct."""

    item: WireType | type[Struct]


Wire = WireType | type[Struct] | ListOf

# Arrays with at least this many items reuse the end of their first item: see `split_tail`.
REUSE_FROM = 3


class Field(NamedTuple):
    """One field of a declaration."""

    name: str
    wire: Wire
    versions: VersionRange
    nullable: VersionRange
    tag: Tag | None
    is_ignorable: bool
    default: object  # msgspec.NODEFAULT without a default

    def tag_in(self, version: int) -> int | None:
        """The field's tag number in `version`; None if it is not a tagged field there."""
        return self.tag.number if self.tag and version in self.tag.versions else None

    @property
    def may_be_null(self) -> bool:
        """Whether some version allows null."""
        return self.nullable != NO_VERSIONS

    @property
    def fixed(self) -> WireType | None:
        """The wire type if it has a fixed size, else None."""
        return self.wire if isinstance(self.wire, WireType) and self.wire.size else None


@cache
def fields_of(declared: type[Struct]) -> tuple[Field, ...]:
    """The fields of a declaration. Raises TypeError for an annotation without a wire type."""
    annotations: dict[str, Any] = {}
    for base in reversed(declared.__mro__):
        annotations |= getattr(base, "__annotations__", {})
    # At run time these are msgspec structs; type checkers do not know it (see schema.Struct).
    made: tuple[msgspec.structs.FieldInfo, ...] = msgspec.structs.fields(declared)  # type: ignore[arg-type]
    return tuple(_field(item, annotations[item.name]) for item in made)


def _field(made: msgspec.structs.FieldInfo, annotation: Any) -> Field:
    _, metadata, is_optional = _unfold(annotation)
    markers = {type(item): item for item in metadata}
    nullable = NO_VERSIONS
    if is_optional:
        first = markers[NullSince].version if NullSince in markers else 0
        nullable = VersionRange(first, ALL_VERSIONS.highest)
    has_factory = made.default_factory is not msgspec.NODEFAULT
    return Field(
        name=made.name,
        wire=_wire_type(annotation),
        versions=markers.get(VersionRange, ALL_VERSIONS),
        nullable=nullable,
        tag=markers.get(Tag),
        is_ignorable=Ignorable in markers,
        default=made.default_factory() if has_factory else made.default,
    )


def _unfold(annotation: Any) -> tuple[Any, list[Any], bool]:
    """Split an annotation into the bare type, the metadata, and whether None is allowed."""
    metadata: list[Any] = []
    is_optional = False
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            metadata += annotation.__metadata__
            annotation = annotation.__origin__
        elif origin in (Union, types.UnionType) and type(None) in get_args(annotation):
            is_optional = True
            rest = [member for member in get_args(annotation) if member is not type(None)]
            annotation = rest[0] if len(rest) == 1 else Union[tuple(rest)]  # noqa: UP007 - a tuple made at run time
        else:
            return annotation, metadata, is_optional


def _wire_type(annotation: Any) -> Wire:
    bare, metadata, _ = _unfold(annotation)
    for item in metadata:
        if isinstance(item, WireType):
            return item
    if get_origin(bare) is list:
        item = _wire_type(get_args(bare)[0])
        if isinstance(item, ListOf):
            raise TypeError(f"{annotation} is a list of lists, which Kafka does not have")
        return ListOf(item)
    if isinstance(bare, type) and issubclass(bare, Struct):
        return bare
    raise TypeError(f"{annotation} has no wire type")


# The fields of a version, each with its tag number, or None if it is not tagged.
PresentFields = list[tuple[Field, int | None]]


def present_fields(declared: type[Struct], version: int) -> Iterator[tuple[Field, int | None]]:
    """The fields of `version`, each with its tag number or None."""
    for field in fields_of(declared):
        if version in field.versions:
            yield field, field.tag_in(version)


def cut_fields(declared: type[Struct], version: int) -> tuple[Field, ...]:
    """The fields that `version` cannot carry, or not completely."""
    return tuple(
        field
        for field in fields_of(declared)
        if version not in field.versions or _lacks_a_part(field.wire, version)
    )


def _lacks_a_part(wire: Wire, version: int) -> bool:
    item = wire.item if isinstance(wire, ListOf) else wire
    return not isinstance(item, WireType) and bool(cut_fields(item, version))


def split_tail(present: PresentFields, version: int) -> tuple[list[Field], PresentFields]:
    """Split the fields of an array's item into a head, and a tail that often repeats.

    In many arrays the items end with the same values: the replicas of a topic's partitions, an
    empty error message, no tagged fields. The quick reader and writer handle such a tail only once,
    for the first item. The tail consists of lists of numbers, nullable fields, error codes and
    flags, and then all tagged fields. It is empty if all its fields have a fixed size, because
    then it saves nothing, or if a value is mutable and so cannot be shared.
    """
    untagged = [field for field, tag in present if tag is None]
    tagged: PresentFields = [(field, tag) for field, tag in present if tag is not None]
    start = len(untagged)
    while start and _often_repeats(untagged[start - 1], version):
        start -= 1
    while start < len(untagged) and untagged[start].fixed:
        start += 1  # one `struct` call handles it together with the fixed fields before it
    if start == len(untagged) or not all(_is_immutable(field.wire) for field, _ in tagged):
        return untagged, []
    return untagged[:start], [*((field, None) for field in untagged[start:]), *tagged]


def _often_repeats(field: Field, version: int) -> bool:
    if isinstance(field.wire, ListOf):
        return isinstance(field.wire.item, WireType)
    if field.fixed:
        return field.fixed.size <= 2
    is_primitive = isinstance(field.wire, WireType) and field.wire.name != "records"
    return is_primitive and version in field.nullable


def _is_immutable(wire: Wire) -> bool:
    if isinstance(wire, ListOf):
        return False
    return isinstance(wire, WireType) or all(_is_immutable(f.wire) for f in fields_of(wire))


def carries_records(wire: Wire) -> bool:
    """Whether it contains records, which are borrowed from the buffer and not copied."""
    if isinstance(wire, ListOf):
        return carries_records(wire.item)
    if isinstance(wire, WireType):
        return wire.name == "records"
    return any(carries_records(field.wire) for field in fields_of(wire))


def smallest_size(wire: Wire, version: int, *, is_flexible: bool) -> int:
    """The smallest encoded size of a value, to check whether a count can be true."""
    if isinstance(wire, ListOf):
        return 1 if is_flexible else 4
    if isinstance(wire, WireType):
        return wire.size or (1 if is_flexible else 2 if wire.name == "string" else 4)
    total = 1 if is_flexible else 0
    for field, tag in present_fields(wire, version):
        if tag is not None:
            continue
        is_nullable_struct = isinstance(field.wire, type) and version in field.nullable
        total += (
            1  # the byte that says null
            if is_nullable_struct
            else smallest_size(field.wire, version, is_flexible=is_flexible)
        )
    return max(total, 1)
