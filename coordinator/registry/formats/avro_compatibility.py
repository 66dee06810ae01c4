"""Whether data of one Avro schema can be read with another, by the rules of schema resolution.

The reasons, their places and their texts are those of Java's SchemaCompatibility (Avro 1.12) as
Confluent's registry words them. A place is a path in the reader's schema: `/fields/1/type`.
Records are compared once per pair, so that recursive types end.

Work is counted with `spend`, which raises above a limit. The reasons of a part are one entry of the
whole's (`inside`), so that lists are not copied: see Found in effort.py.

`%s` in a reason stands for the reader's and the writer's schema: see compatibility.py.
"""

from .avro import PRIMITIVES, AvroSchema, Field, Type
from .effort import Found, Path, first, flat, inside, spend

# Primitives that a reader can make of a writer's.
_PROMOTIONS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}

_DESCRIPTIONS = {
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '{path}' in the %s schema does"
    " not match with the %s schema",
    "TYPE_MISMATCH": "The type (path '{path}') of a field in the %s schema does not match with the"
    " %s schema",
    "NAME_MISMATCH": "The name of the schema has changed (path '{path}')",
    "MISSING_ENUM_SYMBOLS": "The %s schema is missing enum symbols '{info}' at path '{path}' in"
    " the %s schema",
    "MISSING_UNION_BRANCH": "The %s schema is missing a type inside a union field at path '{path}'"
    " in the %s schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field '{info}' at path '{path}' in the %s schema"
    " has no default value and is missing in the %s schema",
}

Reasons = Found[str]


def compatibility(reader: AvroSchema, writer: AvroSchema) -> list[str]:
    """Return why the reader cannot read what the writer writes; nothing if it can.

    Linear in the product of two unions' branches, else in the schemas.
    """
    try:
        found = _Comparison().compare(reader.root, writer.root)
        return first(reason for _, reason in flat(found))
    except _AmbiguousError as error:
        return [f"Unexpected exception during compatibility check: {error}"]


class _AmbiguousError(Exception):
    """A reader's field was named like several of the writer's."""


class _Comparison:
    def __init__(self) -> None:
        self._results: dict[tuple[int, int], Reasons | None] = {}  # None: being compared

    def compare(self, reader: Type, writer: Type, path: Path = ()) -> Reasons:
        spend()
        pair = (id(reader), id(writer))
        if pair in self._results:
            return self._results[pair] or []
        self._results[pair] = None
        reasons = self._compared(reader, writer, path)
        self._results[pair] = reasons
        return reasons

    def _compared(self, reader: Type, writer: Type, path: Path) -> Reasons:
        if "union" in (reader.kind, writer.kind):
            return self._compare_unions(reader, writer, path)
        if reader.is_record and writer.is_record:
            return self._compare_records(reader, writer, path)
        if reader.kind != writer.kind:
            if writer.kind in _PROMOTIONS.get(reader.kind, ()):
                return []
            info = f"reader type: {_kind(reader)} not compatible with writer type: {_kind(writer)}"
            return [_reason("TYPE_MISMATCH", path, info)]
        if reader.kind in PRIMITIVES:
            return []
        if reader.items is not None and writer.items is not None:
            step = "items" if reader.kind == "array" else "values"
            return self.compare(reader.items, writer.items, (*path, step))
        compare = _symbol_reasons if reader.kind == "enum" else _size_reasons
        return _name_reasons(reader, writer, path) + compare(reader, writer, path)

    def _compare_unions(self, reader: Type, writer: Type, path: Path) -> Reasons:
        """Compare types of which one at least is a union."""
        reasons: Reasons = []
        if writer.kind != "union":
            if any(not self.compare(branch, writer) for branch in reader.branches):
                return []
            return [_reason("MISSING_UNION_BRANCH", path, _lacking(writer))]
        for index, branch in enumerate(writer.branches):
            place = (*path, str(index))
            if reader.kind != "union":
                reasons += inside(self.compare(reader, branch, place))
            elif self.compare(reader, branch):
                reasons.append(_reason("MISSING_UNION_BRANCH", place, _lacking(branch)))
        return reasons

    def _compare_records(self, reader: Type, writer: Type, path: Path) -> Reasons:
        reasons = _name_reasons(reader, writer, path)
        spend(len(reader.fields) + len(writer.fields))
        by_name = {member.name: member for member in writer.fields}
        for index, member in enumerate(reader.fields):
            place = (*path, "fields", str(index))
            written = _written_fields(member, by_name)
            if len(written) > 1:
                raise _AmbiguousError(
                    f"Reader record field {member.name} type:{_kind(member.type)} pos:{index}"
                    " matches multiple fields in writer record schema"
                    f" {AvroSchema(writer, {}, set()).canonical()}"
                )
            if written:
                reasons += inside(self.compare(member.type, written[0].type, (*place, "type")))
            elif not member.has_default:
                # As in Java, an enum with a default is compared with the whole writer. So the
                # reason is TYPE_MISMATCH, not the missing default of the field.
                if member.type.kind == "enum" and member.type.default is not None:
                    reasons += inside(self.compare(member.type, writer, (*place, "type")))
                else:
                    reasons.append(
                        _reason("READER_FIELD_MISSING_DEFAULT_VALUE", place, member.name)
                    )
        return reasons


def _written_fields(member: Field, by_name: dict[str, Field]) -> list[Field]:
    """Return the writer's fields that a reader's field is or was named after."""
    return [by_name[name] for name in (member.name, *member.aliases) if name in by_name]


def _name_reasons(reader: Type, writer: Type, path: Path) -> Reasons:
    if reader.name == writer.name or writer.full_name in reader.aliases:
        return []
    return [_reason("NAME_MISMATCH", (*path, "name"), f"expected: {writer.full_name}")]


def _symbol_reasons(reader: Type, writer: Type, path: Path) -> Reasons:
    spend(len(writer.symbols) + len(reader.symbols))
    missing = sorted({*writer.symbols} - {*reader.symbols})
    if not missing or reader.default is not None:
        return []
    return [_reason("MISSING_ENUM_SYMBOLS", (*path, "symbols"), f"[{', '.join(missing)}]")]


def _size_reasons(reader: Type, writer: Type, path: Path) -> Reasons:
    if reader.size == writer.size:
        return []
    info = f"expected: {writer.size}, found: {reader.size}"
    return [_reason("FIXED_SIZE_MISMATCH", (*path, "size"), info)]


def _lacking(writer: Type) -> str:
    return f"reader union lacking writer type: {_kind(writer)}"


def _kind(of_type: Type) -> str:
    return "RECORD" if of_type.is_record else of_type.kind.upper()


def _reason(kind: str, path: Path, info: str) -> str:
    spend(len(path) + len(info) // 8)
    place = "/" + "/".join(path)
    description = _DESCRIPTIONS[kind].format(path=place, info=info)
    return f"{{errorType:'{kind}', description:'{description}', additionalInfo:'{info}'}}"
