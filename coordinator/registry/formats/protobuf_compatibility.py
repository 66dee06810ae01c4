"""Whether data written with one Protobuf schema can be read with another.

The rules, names and texts are those that Confluent documents. The wire format names fields by
their numbers, so fields may come, go, and be renamed. What may not: a package or a message gone, a
field of another kind or wire type, a number with another label, a required field, a oneof's field
gone, and fields that are made exclusive although they were independent.

A field of a message type is compared with the type's definition, in the schema or in the file that
it comes from. Scalars of one group may replace each other: see _GROUPS.

Linear in the fields. An imported type is compared at each use, as in Confluent's registry; if that
takes too many steps, once. Then only types that use each other in a circle, and differ, have fewer
reasons, but always one.
"""

from collections.abc import Iterable

from .effort import Found, Inside, Path, TooManyStepsError, first, flat, limited, spend
from .protobuf import ProtobufSchema
from .protobuf_file import SCALARS, Field, Message, OneOf, map_parts
from .protobuf_names import Definition, Names

_GROUPS = {
    "GENERAL_NUMBER": "int32 int64 uint32 uint64 bool",  # and enums
    "SIGNED_NUMBER": "sint32 sint64",
    "STRING_OR_BYTES": "string bytes",
    "FIXED32": "fixed32 sfixed32",
    "FIXED64": "fixed64 sfixed64",
    "FLOAT": "float",
    "DOUBLE": "double",
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names.split()}

_TEXTS = {
    "PACKAGE_CHANGED": "The package at '{path}' in the %s schema does not match the package in the"
    " %s schema",
    "MESSAGE_REMOVED": "The %s schema is missing a MESSAGE type at path '{path}' in the %s schema",
    "FIELD_KIND_CHANGED": "The type of a field at path '{path}' in the %s schema does not match"
    " the %s schema",
    "FIELD_SCALAR_KIND_CHANGED": "The kind of a SCALAR field at path '{path}' in the %s schema"
    " does not match its kind in the %s schema",
    "FIELD_NAMED_TYPE_CHANGED": "The type of a MESSAGE field at path '{path}' in the %s schema"
    " does not match its type in the %s schema",
    "FIELD_NUMERIC_LABEL_CHANGED": "The label for a NUMERIC field at path '{path}' in the %s"
    " schema does not match its label in the %s schema",
    "REQUIRED_FIELD_ADDED": "A required field  at path '{path}' in the %s schema is missing in the"
    " %s schema",
    "REQUIRED_FIELD_REMOVED": "The %s schema is missing a required field at path: '{path}' in the"
    " %s schema",
    "ONEOF_FIELD_REMOVED": "The %s schema is missing a oneof field at path '{path}' in the %s"
    " schema",
    "MULTIPLE_FIELDS_MOVED_TO_ONEOF": "Multiple fields in the oneof at path '{path}' in the %s"
    " schema are outside a oneof in the %s schema",
    "FIELD_MOVED_TO_EXISTING_ONEOF": "A field in the oneof at path '{path}' in the %s schema is"
    " outside an existing oneof in the %s schema",
}

Reasons = Found[str]
_STEPS_FOR_ALL = 2000


def compatibility(reader: ProtobufSchema, writer: ProtobufSchema) -> list[str]:
    """Return why the reader cannot read what the writer writes; nothing if it can."""
    try:
        with limited(_STEPS_FOR_ALL):
            found = _Comparison(writer, reader).compare_files()
    except TooManyStepsError:
        found = _Comparison(writer, reader, {}).compare_files()
    return first(reason for _, reason in flat(found))


_Results = dict[tuple[int, int], Reasons]


class _Side:
    """One of the two schemas, and where in it the comparison is."""

    def __init__(self, names: Names, package: str) -> None:
        self.names = names
        self.package = package

    def find(self, name: str, inside: Path) -> tuple[str, Definition] | None:
        return self.names.type_named(name, inside, self.package)


class _Comparison:
    """`old` is the writer's schema, `new` the reader's."""

    def __init__(
        self, old: ProtobufSchema, new: ProtobufSchema, results: _Results | None = None
    ) -> None:
        self._old_file, self._new_file = old.file, new.file
        self._old = _Side(Names(old.file, old.imports), old.file.package)
        self._new = _Side(Names(new.file, new.imports), new.file.package)
        self._open: set[int] = set()  # the writer's messages that are being compared
        self._results = results  # of imported types, if they are kept

    def compare_files(self) -> Reasons:
        old, new = self._old_file, self._new_file
        reasons = [] if old.package == new.package else [_reason("PACKAGE_CHANGED", ())]
        return reasons + self._compare_messages(old.messages, new.messages, ())

    def _compare_messages(
        self, old: Iterable[Message], new: Iterable[Message], inside: Path
    ) -> Reasons:
        by_name = {message.name: message for message in new}
        reasons: Reasons = []
        for message in sorted(old, key=lambda message: message.name):
            place = (*inside, message.name)
            if message.name in by_name:
                reasons += self._compare_message(message, by_name[message.name], place, place)
            else:
                found = self._old.find(message.name, place)
                if found is not None and found[1].map_type is None:
                    reasons.append(_reason("MESSAGE_REMOVED", place))
        return reasons

    def _compare_message(self, old: Message, new: Message, inside: Path, path: Path) -> Reasons:
        """Compare messages; `inside` is where names are looked up, `path` what reasons show."""
        spend()
        if id(old) in self._open:
            return []
        self._open.add(id(old))
        reasons = self._compare_fields(old, new, inside, path)
        self._open.remove(id(old))
        return reasons + self._compare_messages(old.messages, new.messages, inside)

    def _compare_fields(self, old: Message, new: Message, inside: Path, path: Path) -> Reasons:
        old_fields, new_fields = _Members(old), _Members(new)
        spend(len(old_fields.by_tag) + len(new_fields.by_tag))
        reasons = _exclusions(old_fields, new, path)
        gone = _deleted_oneofs(old, new, new_fields)
        for tag in sorted({*old_fields.by_tag, *new_fields.by_tag}):
            was, now = old_fields.by_tag.get(tag), new_fields.by_tag.get(tag)
            oneof = old_fields.oneof_of.get(tag)
            if now is None:
                assert was is not None
                if oneof is None:
                    if was.label == "required":
                        reasons.append(_reason("REQUIRED_FIELD_REMOVED", (*path, str(tag))))
                elif oneof not in gone:
                    reasons.append(_reason("ONEOF_FIELD_REMOVED", (*path, oneof, str(tag))))
                continue
            new_oneof = new_fields.oneof_of.get(tag)
            place = (*path, str(tag)) if new_oneof is None else (*path, new_oneof, str(tag))
            if was is not None:
                reasons += self._compare_types(was, now, was.type, now.type, inside, place)
            elif now.label == "required" and new_oneof is None:
                reasons.append(_reason("REQUIRED_FIELD_ADDED", place))
        return reasons

    def _compare_types(
        self, was: Field | None, now: Field | None, old: str, new: str, inside: Path, path: Path
    ) -> Reasons:
        """Compare the types of a field, or of a map's keys or values (then without fields)."""
        old, new = self._as_map(self._old, old, inside), self._as_map(self._new, new, inside)
        kind = self._kind(self._old, old, inside)
        if kind != self._kind(self._new, new, inside):
            return [_reason("FIELD_KIND_CHANGED", path)]
        if kind == "SCALAR":
            return self._compare_scalars(was, now, old, new, inside, path)
        if kind == "MESSAGE":
            return self._compare_named(old, new, inside, path)
        reasons: Reasons = []
        for old_part, new_part in zip(map_parts(old), map_parts(new), strict=True):
            reasons += self._compare_types(None, None, old_part, new_part, inside, path)
        return reasons

    @staticmethod
    def _as_map(side: _Side, of_type: str, inside: Path) -> str:
        found = None if of_type.startswith("map<") else side.find(of_type, inside)
        return (found[1].map_type or of_type) if found else of_type

    @staticmethod
    def _kind(side: _Side, of_type: str, inside: Path) -> str:
        if of_type in SCALARS:
            return "SCALAR"
        if of_type.startswith("map<"):
            return "MAP"
        found = side.find(of_type, inside)
        return "SCALAR" if found and found[1].is_enum else "MESSAGE"

    def _compare_scalars(
        self, was: Field | None, now: Field | None, old: str, new: str, inside: Path, path: Path
    ) -> Reasons:
        del inside
        group = _GROUP_OF.get(old, "GENERAL_NUMBER")
        if group != _GROUP_OF.get(new, "GENERAL_NUMBER"):
            return [_reason("FIELD_SCALAR_KIND_CHANGED", path)]
        if was is None or now is None or not was.label or not now.label:
            return []
        if was.label != now.label and group != "STRING_OR_BYTES":
            return [_reason("FIELD_NUMERIC_LABEL_CHANGED", path)]
        return []

    def _compare_named(self, old: str, new: str, inside: Path, path: Path) -> Reasons:
        was, now = self._old.find(old, inside), self._new.find(new, inside)
        if was is None or now is None:
            return [] if old == new else [_reason("FIELD_NAMED_TYPE_CHANGED", path)]
        (old_name, old_type), (new_name, new_type) = was, now
        local = _local(old_name, old_type.package)
        if local != _local(new_name, new_type.package):
            return [_reason("FIELD_NAMED_TYPE_CHANGED", path)]
        if old_type.file == new_type.file == "":
            return []  # compared where it is defined
        reasons = self._compare_elsewhere(old_type, new_type, tuple(local.split(".")))
        if not reasons:
            return []
        return [Inside((), reasons), _reason("FIELD_NAMED_TYPE_CHANGED", path)]

    def _compare_elsewhere(self, old: Definition, new: Definition, inside: Path) -> Reasons:
        """Compare types of which one at least is of an imported file, in their packages."""
        if not isinstance(old.declaration, Message) or not isinstance(new.declaration, Message):
            return []
        pair = (id(old), id(new))
        if self._results is not None and pair in self._results:
            return self._results[pair]
        packages = self._old.package, self._new.package
        self._old.package, self._new.package = old.package, new.package
        reasons = self._compare_message(old.declaration, new.declaration, inside, inside)
        self._old.package, self._new.package = packages
        if self._results is not None:
            self._results[pair] = reasons
        return reasons


class _Members:
    """A message's fields by their numbers, those of oneofs too."""

    def __init__(self, message: Message) -> None:
        self.by_tag: dict[int, Field] = {member.tag: member for member in message.fields}
        self.oneof_of: dict[int, str] = {}
        for oneof in message.oneofs:
            for member in oneof.fields:
                self.by_tag[member.tag] = member
                self.oneof_of[member.tag] = oneof.name


def _deleted_oneofs(old: Message, new: Message, new_fields: _Members) -> set[str]:
    """Return the oneofs that are gone with all of their fields, which is compatible."""
    kept = {oneof.name for oneof in new.oneofs}
    return {
        oneof.name
        for oneof in old.oneofs
        if oneof.name not in kept and not any(f.tag in new_fields.by_tag for f in oneof.fields)
    }


def _exclusions(old_fields: _Members, new: Message, path: Path) -> Reasons:
    """Find oneofs whose older fields were not exclusive before."""
    reasons: Reasons = []
    for oneof in new.oneofs:
        origins, moved_in = _origins(old_fields, oneof)
        if len(origins) > 1:
            name = (
                "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
                if moved_in > 1
                else "FIELD_MOVED_TO_EXISTING_ONEOF"
            )
            reasons.append(_reason(name, (*path, oneof.name)))
    return reasons


def _origins(old_fields: _Members, oneof: OneOf) -> tuple[set[str | int], int]:
    """Return where a oneof's fields come from, and how many were in no oneof."""
    origins: set[str | int] = set()
    moved_in = 0
    for member in oneof.fields:
        if member.tag in old_fields.oneof_of:
            origins.add(old_fields.oneof_of[member.tag])
        elif member.tag in old_fields.by_tag:
            origins.add(member.tag)
            moved_in += 1
    return origins, moved_in


def _local(full_name: str, package: str) -> str:
    return full_name.removeprefix(f"{package}.") if package else full_name


def _reason(name: str, path: Path) -> str:
    description = _TEXTS[name].format(path="#/" + "/".join(path))
    return f'{{errorType:"{name}", description:"{description}"}}'
