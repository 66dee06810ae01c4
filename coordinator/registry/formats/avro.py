"""Avro schemas: parsed, and written as Java's Avro writes them.

The text that the registry stores is that of Java's `Schema.toString`: type first, then name,
namespace (unless it is the enclosing one), doc, fields, and the other attributes in their order. A
type is written once, then named; a reference's own type is named only. Texts that differ in blanks,
or in the order of these attributes, are therefore the same schema. The normalized form writes full
names everywhere and sorts the other attributes.

The `avro` package keeps neither the order of attributes nor the numbers of defaults, and fastavro
parses to full names; so the texts above cannot be had from them. What is refused is what the
Schema.Parser of Avro 1.12.1 refuses, with the settings of Confluent's AvroSchema.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from odradek.coordinator.registry.errors import InvalidSchemaError
from odradek.coordinator.registry.json_text import InvalidJsonError, Number, dumps, loads

from .effort import spend

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_NAMED = ("record", "error", "enum", "fixed")
# A simple name that is one of these would be read as a type; the full name is written instead.
_WORDS = {*PRIMITIVES, "record", "enum", "array", "map", "union", "fixed"}
# A string, which is kept, or a comment. Either matches to the end of the text if it has no end.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.?)*(?:"|\Z))|//[^\r\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_NAME = re.compile(r"[^\W\d]\w*")
_NEW_NAME = re.compile(_NAME.pattern, re.ASCII)
# The numbers that Java's Double.parseDouble reads, but for hexadecimal ones.
_DOUBLE = re.compile(
    r"[\0- ]*([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))[fFdD]?[\0- ]*", re.ASCII
)
_MAX_SIZE = (1 << 31) - 9  # of a fixed: what a Java array may have
# Records end earlier, at the interpreter's limit of recursion (RecursionError): about 160 levels.
_MAX_DEPTH = 400

# Attributes that the Avro specification names. The others, and their order, are kept.
_OF_FIELDS = {"name", "type", "doc", "default", "order", "aliases"}
_OF_TYPES = {
    "type", "name", "namespace", "doc", "aliases", "fields", "items", "values", "symbols", "size",
}  # fmt: skip
_OF_ENUMS = {*_OF_TYPES, "default"}


@dataclass(slots=True, eq=False, kw_only=True)
class Type:
    """One type; `kind` is a primitive, record, error, enum, array, map, fixed or union.

    `undefined` is a full name whose definition comes later in the text. The definition takes the
    place of such a type before the parser returns.
    """

    kind: str
    undefined: str | None = None
    name: str = ""
    space: str = ""
    doc: Any = None
    aliases: tuple[str, ...] = ()  # full names
    props: dict[str, Any] = field(default_factory=dict)
    fields: list["Field"] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    default: str | None = None  # of an enum
    size: int = 0
    items: "Type | None" = None  # of an array or a map
    branches: list["Type"] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        """The full name of a named type; of another one, its kind."""
        return f"{self.space}.{self.name}" if self.space else self.name or self.kind

    @property
    def is_record(self) -> bool:
        return self.kind in ("record", "error")


@dataclass(slots=True, eq=False, kw_only=True)
class Field:
    name: str
    type: Type
    doc: str | None = None
    has_default: bool = False
    default: Any = None
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    props: dict[str, Any] = field(default_factory=dict)


class AvroSchema:
    """A parsed schema, with the types that its references define.

    `named` has the full names of the references' own types. These are written as names; types
    that references define inside their own are written out.
    """

    def __init__(self, root: Type, referred: Mapping[str, Type], named: Set[str]) -> None:
        self.root = root
        self._referred = referred
        self._named = named

    def canonical(self) -> str:
        return dumps(_written(self.root, "", set(self._named)))

    def inlined(self) -> str:
        """Return the schema with its references in place."""
        return dumps(_written(self.root, "", set()))

    def canonical_and_resolved(self) -> tuple[str, str]:
        """Return the stored text, and one with references in place and names sorted."""
        written = _written(self.root, "", set(self._named))
        in_place = _written(self.root, "", set()) if self._referred else written
        return dumps(written), dumps(in_place, sort_keys=True)

    def normalized(self) -> "AvroSchema":
        """Return the schema with sorted attributes, parsed again."""
        parser = _Parser(is_new=False, names=self._referred)
        root = parser.read(_normal(self.root, set(self._named)))
        return AvroSchema(root, self._referred, self._named)

    def field_names(self) -> Iterable[str]:
        return (member.name for member in self.root.fields)

    def check_fields(self) -> None:
        """There is nothing to check in Avro."""


def parse(text: str, references: Mapping[str, str], *, is_new: bool) -> AvroSchema:
    """Parse a schema. Linear in the text: 0.1 s for a megabyte.

    With `is_new`, namespaces and defaults are checked too, and names must be ASCII. Raises
    InvalidSchemaError.
    """
    parser = _Parser(is_new=is_new)
    named = {parser.parse(referred).full_name for referred in references.values()}
    referred = dict(parser.names)
    if not is_new:
        parser.valid_name = _NAME
    return AvroSchema(parser.parse(text), referred, named)


class _Parser:
    """Parses texts, each of which may name the types of those before it.

    As in Java, a type is defined where its definition ends, and may be named before, anywhere in
    its text. Until the text has been read, such a name stands for a record without fields. A
    second definition of a name is accepted if it is the same.
    """

    def __init__(self, *, is_new: bool, names: Mapping[str, Type] | None = None) -> None:
        self.names = dict(names or {})
        self.valid_name = _NEW_NAME if is_new else None
        self._is_new = is_new
        self._open: set[str] = set()  # records whose definition has not ended
        self._undefined = 0  # how many names stood before the definition
        self._incomplete: list[Field] = []  # fields with such names in their types

    def parse(self, text: str) -> Type:
        """Parse a text, which may have the comments of C and Java, as Avro's parser allows."""
        if "//" in text or "/*" in text:
            text = _COMMENT.sub(lambda found: found[1] or " ", text)
        try:
            value = loads(text, exact=True)
        except InvalidJsonError as error:
            raise InvalidSchemaError(str(error)) from None
        return self.read(value)

    def read(self, value: Any) -> Type:
        root = self._type(value, "", 0)
        for member in self._incomplete:
            member.type = self._completed(member.type)
        for member in self._incomplete:
            self._check_default(member)
        self._incomplete.clear()
        root = self._completed(root)
        return self.names[root.full_name] if root.name else root

    def _completed(self, of_type: Type) -> Type:
        """Return a type with definitions in the place of undefined types."""
        if of_type.undefined is not None:
            defined = self.names.get(of_type.undefined)
            if defined is None:
                raise InvalidSchemaError(f"Undefined schema: {of_type.undefined}")
            return defined
        if of_type.items is not None:
            of_type.items = self._completed(of_type.items)
        if of_type.kind == "union":
            of_type.branches = [self._completed(branch) for branch in of_type.branches]
            _check_branches(of_type.branches)
        return of_type

    def _type(self, value: Any, space: str, depth: int) -> Type:
        if depth > _MAX_DEPTH:
            raise InvalidSchemaError(f"nested deeper than {_MAX_DEPTH}")
        if isinstance(value, str):
            return self._named(value, space)
        if isinstance(value, list):
            return self._union(value, space, depth)
        if not isinstance(value, dict):
            raise InvalidSchemaError(f"Schema not yet supported: {value!r}")
        kind = value.get("type")
        if not isinstance(kind, str):
            raise InvalidSchemaError(f"No type: {dumps(value)}")
        if kind in PRIMITIVES:
            return Type(kind=kind, props=_without(_OF_TYPES, value))
        if kind in _NAMED:
            return self._define(kind, value, space, depth)
        if kind in ("array", "map"):
            attribute = "items" if kind == "array" else "values"
            if value.get(attribute) is None:
                raise InvalidSchemaError(f"{kind.title()} has no {attribute} type: {dumps(value)}")
            items = self._type(value[attribute], space, depth + 1)
            return Type(kind=kind, items=items, props=_without(_OF_TYPES, value))
        return self._named(kind, space)

    def _named(self, name: str, space: str) -> Type:
        if name in PRIMITIVES:
            return Type(kind=name)
        full = name if "." in name or not space else f"{space}.{name}"
        found = self.names.get(full) or self.names.get(name)
        if found is None:
            self._undefined += 1
            # A record that is being defined has no default (kind ""): it would contain itself.
            return Type(kind="" if full in self._open else "record", undefined=full)
        return found

    def _union(self, values: list[Any], space: str, depth: int) -> Type:
        branches = [self._type(value, space, depth + 1) for value in values]
        _check_branches(branches)
        return Type(kind="union", branches=branches)

    def _define(self, kind: str, value: dict[str, Any], outer: str, depth: int) -> Type:
        name = value.get("name")
        if not isinstance(name, str):
            raise InvalidSchemaError(f"No name in schema: {dumps(value)}")
        space = value.get("namespace", outer)
        space, name = _split(name, space if isinstance(space, str) else outer)
        defined = Type(kind=kind, name=name, space=space, doc=_text(value, "doc"))
        full = defined.full_name
        if full in PRIMITIVES:
            raise InvalidSchemaError(f"Schemas may not be named after primitives: {full}")
        self._check_name(name)
        aliases = [_split(alias, space) for alias in _texts(value, "aliases")]
        if self._is_new:
            for part in (*(space.split(".") if space else ()), *(alias for _, alias in aliases)):
                self._check_name(part)
        defined.aliases = tuple(dict.fromkeys(_joined(*alias) for alias in aliases))
        _DEFINE[kind](self, defined, value, depth)
        defined.props = _without(_OF_ENUMS if kind == "enum" else _OF_TYPES, value)
        known = self.names.setdefault(full, defined)
        if known is not defined and not _is_same(known, defined):
            raise InvalidSchemaError(f"Can't redefine: {full}")
        return defined

    def _record(self, defined: Type, value: dict[str, Any], depth: int) -> None:
        if not isinstance(value.get("fields"), list):
            raise InvalidSchemaError(f"Record has no fields: {dumps(value)}")
        full = defined.full_name
        self._open.add(full)
        seen: set[str] = set()
        for item in value["fields"]:
            made = self._field(item, defined.space, depth)
            if made.name in seen:
                raise InvalidSchemaError(f"Duplicate field {made.name} in record {full}")
            seen.add(made.name)
            defined.fields.append(made)
        self._open.discard(full)

    def _field(self, value: Any, space: str, depth: int) -> Field:
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            raise InvalidSchemaError(f"No field name: {value!r}")
        name = value["name"]
        self._check_name(name)
        if value.get("type") is None:
            raise InvalidSchemaError(f"No field type: {dumps(value)}")
        undefined_before = self._undefined
        of_type = self._type(value["type"], space, depth + 1)
        default = value.get("default")
        if of_type.kind in ("float", "double") and isinstance(default, str):
            default = _double(default)
        order = str(value.get("order", "ascending")).lower()
        if order not in ("ascending", "descending", "ignore"):
            raise InvalidSchemaError(f"No enum constant {order}")
        made = Field(
            name=name,
            type=of_type,
            doc=_text(value, "doc"),
            has_default="default" in value,
            default=default,
            order=order,
            aliases=tuple(_texts(value, "aliases")),
            props=_without(_OF_FIELDS, value),
        )
        self._check_default(made)
        if self._undefined > undefined_before:
            self._incomplete.append(made)
        return made

    def _check_default(self, member: Field) -> None:
        if not self._is_new or not member.has_default:
            return
        if not _is_valid_default(member.type, member.default):
            raise InvalidSchemaError(
                f"Invalid default for field {member.name}: {dumps(member.default)} not a"
                f" {dumps(_written(member.type, '', set()))}"
            )

    def _enum(self, defined: Type, value: dict[str, Any], depth: int) -> None:
        del depth
        symbols = value.get("symbols")
        if not isinstance(symbols, list):
            raise InvalidSchemaError(f"Enum has no symbols: {dumps(value)}")
        for symbol in symbols:
            self._check_name(symbol)
        if len(set(symbols)) != len(symbols):
            raise InvalidSchemaError(f"Duplicate enum symbol in {defined.full_name}")
        defined.symbols = tuple(symbols)
        default = _text(value, "default")
        if default is not None and default not in symbols:
            raise InvalidSchemaError(
                f"The Enum Default: {default} is not in the enum symbol set: {symbols}"
            )
        defined.default = default

    def _fixed(self, defined: Type, value: dict[str, Any], depth: int) -> None:
        del depth
        size = value.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _MAX_SIZE:
            raise InvalidSchemaError(f"Invalid or no size: {dumps(value)}")
        defined.size = size

    def _check_name(self, name: Any) -> None:
        if not isinstance(name, str):
            raise InvalidSchemaError(f"Illegal name: {name!r}")
        if self.valid_name is not None and not self.valid_name.fullmatch(name):
            raise InvalidSchemaError(f"Illegal initial character: {name}" if name else "Empty name")


_DEFINE: dict[str, Callable[[_Parser, Type, dict[str, Any], int], None]] = {
    "record": _Parser._record,
    "error": _Parser._record,
    "enum": _Parser._enum,
    "fixed": _Parser._fixed,
}


def _split(name: str, space: str) -> tuple[str, str]:
    """Return the namespace and the simple name of a name that stands in a namespace."""
    if "." not in name:
        return space, name
    owner, _, simple = name.rpartition(".")
    return owner, simple


def _joined(space: str, name: str) -> str:
    return f"{space}.{name}" if space else name


def _check_branches(branches: list[Type]) -> None:
    seen: set[str] = set()
    for branch in branches:
        if branch.kind == "union":
            raise InvalidSchemaError("Nested union")
        if branch.undefined is not None:
            continue
        if branch.full_name in seen:
            raise InvalidSchemaError(f"Duplicate in union:{branch.full_name}")
        seen.add(branch.full_name)


def _is_same(one: Type, other: Type) -> bool:
    """Whether two definitions of a name are the same, but for docs, aliases, defaults of enums."""
    return (
        (one.kind == other.kind or (one.is_record and other.is_record))
        and (one.symbols, one.size) == (other.symbols, other.size)
        and _is_same_json(one.props, other.props)
        and len(one.fields) == len(other.fields)
        and all(map(_is_same_field, one.fields, other.fields))
    )


def _is_same_field(one: Field, other: Field) -> bool:
    return (
        (one.name, one.has_default, one.order) == (other.name, other.has_default, other.order)
        and _is_same_json([one.default, one.props], [other.default, other.props])
        and _is_same_part(one.type, other.type)
    )


def _is_same_part(one: Type, other: Type) -> bool:
    spend()
    if (one.space, one.name) != (other.space, other.name):
        return False
    if one.name:  # definitions of one name are the same
        return True
    return (
        one.undefined is None
        and other.undefined is None
        and one.kind == other.kind
        and _is_same_json(one.props, other.props)
        and (one.items is None or other.items is None or _is_same_part(one.items, other.items))
        and len(one.branches) == len(other.branches)
        and all(map(_is_same_part, one.branches, other.branches))
    )


def _is_same_json(one: Any, other: Any) -> bool:
    """Whether two values are the same as JSON, in which 1 is neither 1.0 nor true."""
    return one is other or dumps(_as_doubles(one), sort_keys=True) == dumps(
        _as_doubles(other), sort_keys=True
    )


def _without(reserved: set[str], value: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name not in reserved}


def _text(value: dict[str, Any], name: str) -> str | None:
    text = value.get(name)
    return text if isinstance(text, str) else None


def _texts(value: dict[str, Any], name: str) -> list[str]:
    texts = value.get(name, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InvalidSchemaError(f"{name} not an array of strings: {texts!r}")
    return list(dict.fromkeys(texts))


def _double(text: str) -> float:
    found = _DOUBLE.fullmatch(text)
    if found is None:
        raise InvalidSchemaError(f"For input string: {text!r}")
    return float(found[1])


def _is_valid_default(
    of_type: Type, value: Any, known: dict[tuple[int, int], bool] | None = None
) -> bool:
    """Whether a JSON value is a default of a type; for a union, of any of its branches.

    `known`: of records and values that were met already, because records share defaults.
    """
    spend()
    known = {} if known is None else known
    kind = of_type.kind
    if kind == "union":
        return any(_is_valid_default(branch, value, known) for branch in of_type.branches)
    if of_type.items is not None:
        if isinstance(value, dict) != (kind == "map") or not isinstance(value, dict | list):
            return False
        items = list(value.values()) if isinstance(value, dict) else value
        return all(_is_valid_default(of_type.items, item, known) for item in items)
    if of_type.is_record:
        pair = (id(of_type), id(value))
        if pair not in known:
            known[pair] = False  # a default that contains itself has no end
            known[pair] = isinstance(value, dict) and all(
                (member.name in value or member.has_default)
                and _is_valid_default(member.type, value.get(member.name, member.default), known)
                for member in of_type.fields
            )
        return known[pair]
    return _IS_DEFAULT.get(kind, _is_text)(value)


def _is_whole(value: Any, end: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -end <= value < end


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Number) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_IS_DEFAULT: dict[str, Callable[[Any], bool]] = {
    "": lambda _: False,
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: _is_whole(value, 1 << 31),
    "long": lambda value: _is_whole(value, 1 << 63),
    "float": _is_number,
    "double": _is_number,
}


# -- as Java writes it -----------------------------------------------------------------------------


def _written(of_type: Type, space: str, known: set[str]) -> Any:
    """Return a type as JSON; names that are known already are written instead of the type."""
    if of_type.kind == "union":
        return [_written(branch, space, known) for branch in of_type.branches]
    if of_type.kind in PRIMITIVES:
        return {"type": of_type.kind, **_plain(of_type.props)} if of_type.props else of_type.kind
    if of_type.items is not None:
        attribute = "items" if of_type.kind == "array" else "values"
        items = _written(of_type.items, space, known)
        return {"type": of_type.kind, attribute: items, **_plain(of_type.props)}
    if of_type.undefined is not None:
        return of_type.undefined
    full = of_type.full_name
    if full in known:
        return _qualified(full, space)
    known.add(full)
    made: dict[str, Any] = {"type": of_type.kind, "name": of_type.name}
    if of_type.space != space:
        made["namespace"] = of_type.space
    if of_type.doc is not None:
        made["doc"] = of_type.doc
    if of_type.is_record:
        made["fields"] = [_written_field(member, of_type.space, known) for member in of_type.fields]
    elif of_type.kind == "enum":
        made["symbols"] = list(of_type.symbols)
        if of_type.default is not None:
            made["default"] = of_type.default
    else:
        made["size"] = of_type.size
    made.update(_plain(of_type.props))
    if of_type.aliases:
        made["aliases"] = [_qualified(alias, of_type.space) for alias in of_type.aliases]
    return made


def _written_field(member: Field, space: str, known: set[str]) -> Any:
    made: dict[str, Any] = {"name": member.name, "type": _written(member.type, space, known)}
    if member.doc is not None:
        made["doc"] = member.doc
    if member.has_default:
        made["default"] = _as_doubles(member.default)
    if member.order != "ascending":
        made["order"] = member.order
    if member.aliases:
        made["aliases"] = list(member.aliases)
    made.update(_plain(member.props))
    return made


def _qualified(full: str, space: str) -> str:
    """Return the simple name of a type if it means the type in a namespace, else the full name."""
    owner, _, simple = full.rpartition(".")
    return simple if owner == space and simple not in _WORDS else full


def _plain(props: dict[str, Any]) -> dict[str, Any]:
    return {name: _as_doubles(value) for name, value in props.items()}


def _as_doubles(value: Any) -> Any:
    """Numbers with a fraction are doubles in Java's Avro."""
    if isinstance(value, Number):
        return float(value)
    if isinstance(value, dict):
        return {name: _as_doubles(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_doubles(item) for item in value]
    return value


# -- the normalized form ---------------------------------------------------------------------------


def _normal(of_type: Type, known: set[str]) -> Any:
    """Return a type as JSON with full names and sorted attributes, to be parsed again."""
    if of_type.kind == "union":
        return [_normal(branch, known) for branch in of_type.branches]
    if of_type.kind in PRIMITIVES:
        return {"type": of_type.kind, **_type_props(of_type)}
    if of_type.items is not None:
        attribute = "items" if of_type.kind == "array" else "values"
        items = _normal(of_type.items, known)
        return {"type": of_type.kind, attribute: items, **_type_props(of_type)}
    full = of_type.full_name
    if full in known:
        return full
    known.add(full)
    kind = "record" if of_type.is_record else of_type.kind
    made: dict[str, Any] = {"type": kind, "name": full}
    if of_type.is_record:
        made["fields"] = [_normal_field(member, known) for member in of_type.fields]
    elif of_type.kind == "enum":
        made.update(symbols=list(of_type.symbols), default=of_type.default)
    else:
        made["size"] = of_type.size
    if of_type.doc:
        made["doc"] = of_type.doc
    made["aliases"] = sorted(of_type.aliases)
    return {**made, **_type_props(of_type)}


def _normal_field(member: Field, known: set[str]) -> Any:
    made: dict[str, Any] = {"name": member.name, "type": _normal(member.type, known)}
    made.update(order=member.order, doc=member.doc, aliases=sorted(member.aliases))
    if member.has_default:
        made["default"] = _with_sorted_names(_typed(member.type, member.default))
    return {**made, **_with_sorted_names(member.props)}


def _typed(of_type: Type, value: Any) -> Any:
    """Write whole numbers as floats where the type is one: `1` as `1.0`."""
    if of_type.kind == "union" and of_type.branches:
        return _typed(of_type.branches[0], value)
    if of_type.kind in ("float", "double") and isinstance(value, int):
        return float(value)
    if of_type.items is not None and isinstance(value, list):
        return [_typed(of_type.items, item) for item in value]
    if of_type.items is not None and isinstance(value, dict):
        return {name: _typed(of_type.items, item) for name, item in value.items()}
    if of_type.is_record and isinstance(value, dict):
        types = {member.name: member.type for member in of_type.fields}
        return {n: _typed(types[n], item) if n in types else item for n, item in value.items()}
    return value


def _type_props(of_type: Type) -> dict[str, Any]:
    """Return a type's attributes sorted; those of a logical type that is valid come first."""
    props = of_type.props
    first: tuple[str, ...] = ()
    if props.get("logicalType") == "decimal":
        if _is_decimal(of_type):
            first = ("logicalType", "precision", *(("scale",) if props.get("scale") else ()))
    elif [props.get("logicalType"), of_type.kind, of_type.size] in _LOGICAL_TYPES:
        first = ("logicalType",)
    sorted_props = _with_sorted_names(props)
    return {**{name: sorted_props[name] for name in first}, **sorted_props}


def _is_decimal(of_type: Type) -> bool:
    precision: Any = of_type.props.get("precision")
    scale: Any = of_type.props.get("scale", 0)
    if not _is_whole(precision, 1 << 31) or not _is_whole(scale, 1 << 31):
        return False
    most = int(math.log10(2) * (8 * of_type.size - 1)) if of_type.kind == "fixed" else 1 << 31
    return of_type.kind in ("bytes", "fixed") and 0 <= scale <= precision and 0 < precision <= most


# Names of logical types, with the kind and the size of the types that they are for.
_LOGICAL_TYPES = [
    ["big-decimal", "bytes", 0], ["uuid", "string", 0], ["uuid", "fixed", 16],
    ["duration", "fixed", 12], ["date", "int", 0], ["time-millis", "int", 0],
    ["time-micros", "long", 0], ["timestamp-millis", "long", 0], ["timestamp-micros", "long", 0],
    ["timestamp-nanos", "long", 0], ["local-timestamp-millis", "long", 0],
    ["local-timestamp-micros", "long", 0], ["local-timestamp-nanos", "long", 0],
]  # fmt: skip


def _with_sorted_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_sorted_names(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_with_sorted_names(item) for item in value]
    return value
