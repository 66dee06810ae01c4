"""JSON Schemas: parsed, resolved, and split into parts that can be compared.

The text that the registry stores is the given one without blanks; the normalized form has the
names of objects sorted.

Comparing needs a schema's keywords grouped by what they speak of. A schema is one Node, or several
that must all hold: `{"type": "string", "enum": ["a"]}` is allOf(enum, string). Types in an array
are an anyOf. An object without any keyword that restricts is the empty schema. This split is that
of the libraries of Confluent's registry (everit for drafts up to 7, json-sKema from 2019-09 on), so
that reasons come out alike.

`$ref` is resolved by the `referencing` package: to definitions, anchors, ids, the schemas of
references, and the meta-schemas of json-schema.org. Nothing is fetched.
"""

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from odradek.coordinator.registry.errors import InvalidSchemaError
from odradek.coordinator.registry.json_text import InvalidJsonError, dumps, loads

from .effort import spend
from .java_patterns import fault_of

_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_STRING = ("minLength", "maxLength", "pattern", "format")
_NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_ARRAY = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains")
_MODERN_ARRAY = ("prefixItems", "unevaluatedItems", "minContains", "maxContains")
_OBJECT = (
    "properties", "required", "minProperties", "maxProperties", "dependencies",
    "patternProperties", "additionalProperties", "propertyNames",
)  # fmt: skip
_MODERN_OBJECT = ("dependentRequired", "dependentSchemas", "unevaluatedProperties")
_CONDITION = ("if", "then", "else")
_COMBINED = ("allOf", "anyOf", "oneOf")
_SIZES = (
    "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
    "minContains", "maxContains",
)  # fmt: skip
_MAX_DIGITS = 4000  # of a number that is computed with; 1e1000000 would take minutes
_MODERN_DRAFTS = ("2019-09", "2020-12")
_MAX_DEPTH = 200


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    """A part of a schema.

    kind: string, number, array, object, boolean, null, enum, const, not, condition, combined,
    reference, empty, true, or false.
    """

    kind: str
    source: Any = None  # the JSON it was made of, by which equal parts are found
    keywords: dict[str, Any] = field(default_factory=dict)
    criterion: str = ""  # of combined: allOf, anyOf or oneOf
    parts: list["Node"] = field(default_factory=list)  # of combined; of not, one
    properties: dict[str, "Node"] = field(default_factory=dict)
    patterns: dict[str, "Node"] = field(default_factory=dict)
    schema_dependencies: dict[str, "Node"] = field(default_factory=dict)
    property_dependencies: dict[str, frozenset[str]] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    item: "Node | None" = None  # of all items of an array
    items: list["Node"] = field(default_factory=list)  # of its first items
    is_open: bool = True  # more properties, or items, are allowed
    rest: "Node | None" = None  # what these must be
    unevaluated: "Node | None" = None
    target: "Node | None" = None  # of a reference
    has_default: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it allows every value."""
        return self.kind in ("empty", "true")


class JsonSchema:
    def __init__(self, value: Any, references: Mapping[str, str]) -> None:
        self._value = value
        self._references = references
        self._root: Node | None = None

    @property
    def root(self) -> Node:
        """The schema's parts, made at the first access. Raises InvalidSchemaError."""
        if self._root is None:
            self._root = _Loader(self._value, self._references).root()
        return self._root

    def canonical(self) -> str:
        return dumps(self._value)

    def normalized(self) -> "JsonSchema":
        return JsonSchema(_sorted(self._value), self._references)

    def field_names(self) -> Iterable[str]:
        properties = self._value.get("properties") if isinstance(self._value, dict) else None
        return properties if isinstance(properties, dict) else ()

    def check_fields(self) -> None:
        """Check that no property has a name that is reserved. Raises InvalidSchemaError."""
        if any(name.startswith("$$") for name in self.root.properties):
            raise InvalidSchemaError("Field names cannot start with $$ prefix")


def parse(text: str, references: Mapping[str, str], *, is_new: bool) -> JsonSchema:
    """Parse a schema; with `is_new`, its keywords and references are checked too.

    Linear in the text. Raises InvalidSchemaError.
    """
    try:
        value = loads(text, exact=True)
    except InvalidJsonError as error:
        raise InvalidSchemaError(f"Invalid JSON: {error}") from None
    schema = JsonSchema(value, references)
    if is_new:
        _ = schema.root
    return schema


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


class _Loader:
    """Makes nodes of one document and of what it refers to; each JSON object becomes one node.

    What `$ref` refers to is filled after what refers to it: a chain of references is no nesting.
    """

    def __init__(self, value: Any, references: Mapping[str, str]) -> None:
        if not isinstance(value, dict | bool):
            raise InvalidSchemaError(
                "Invalid JSON schema: expected an object or boolean at the root"
            )
        self._value = value
        self._references = references
        self._nodes: dict[int, Node] = {}
        self._kept: list[Any] = []  # keeps what _nodes knows by id
        self._filled: set[int] = set()  # the ids of those that have their parts, or get them now
        self._targets: list[tuple[Any, Any]] = []  # of references: to be filled, with resolvers
        draft = str(value.get("$schema", "")) if isinstance(value, dict) else ""
        self._is_modern = any(name in draft for name in _MODERN_DRAFTS)
        self._is_draft_4 = "draft-04" in draft
        self._id_keyword = "id" if self._is_draft_4 else "$id"

    def root(self) -> Node:
        if isinstance(self._value, bool):
            return self._node(self._value, None, 0)
        import jsonschema_specifications
        import referencing

        own_id = self._value.get(self._id_keyword)
        base = own_id.rstrip("#") if isinstance(own_id, str) else ""
        documents: dict[str, Any] = {}
        for name, text in self._references.items():
            try:
                documents[name] = loads(text, exact=True)
            except InvalidJsonError as error:
                raise InvalidSchemaError(f"Invalid JSON in reference {name}: {error}") from None
        documents[base] = self._value
        try:
            registry: Any = jsonschema_specifications.REGISTRY
            for name, document in documents.items():
                registry = registry.with_resource(name, self._resource(document))
            with suppress(AttributeError, TypeError, ValueError, KeyError):  # it may be malformed
                registry = registry.crawl()  # once: else at each anchor that is looked up
            self._unresolvable: Any = referencing.exceptions.Unresolvable
            self._by_name = registry
            root = self._node(self._value, registry.resolver(base), 0)
            while self._targets:
                value, resolver = self._targets.pop()
                self._node(value, resolver, 0)
        except RecursionError:
            raise InvalidSchemaError("nested too deeply") from None
        return root

    def _node(self, value: Any, resolver: Any, depth: int) -> Node:
        spend()
        if isinstance(value, bool):
            return Node(kind="true" if value else "false", source=value)
        if not isinstance(value, dict):
            raise InvalidSchemaError(f"expected type: object or boolean, found: {dumps(value)}")
        if depth > _MAX_DEPTH:
            raise InvalidSchemaError(f"nested deeper than {_MAX_DEPTH}")
        node = self._unfilled(value)
        if id(value) in self._filled:
            return node
        self._filled.add(id(value))
        is_root = value is self._value
        if resolver is not None and not is_root and isinstance(value.get(self._id_keyword), str):
            try:
                resolver = resolver.in_subresource(self._resource(value))
            except ValueError as error:
                raise InvalidSchemaError(f"#/{self._id_keyword}: {error}") from None
        self._fill(node, value, resolver, depth)
        return node

    def _unfilled(self, value: dict[str, Any]) -> Node:
        """Return the one node of an object, which may not have its parts yet."""
        known = self._nodes.get(id(value))
        if known is None:
            known = self._nodes[id(value)] = Node(kind="empty", source=value)
            self._kept.append(value)
        return known

    def _resource(self, value: Any) -> Any:
        import referencing
        import referencing.jsonschema as dialects

        if isinstance(value, dict):
            _expect(value, "$schema", str, "")
        default = dialects.DRAFT202012 if self._is_modern else dialects.DRAFT7
        return referencing.Resource.from_contents(value, default)

    def _fill(self, node: Node, value: dict[str, Any], resolver: Any, depth: int) -> None:
        """Give a node, which may be referred to already, its parts."""
        if "$ref" in value and not self._is_modern:
            parts = [self._reference(value, resolver)]
        else:
            parts = self._parts(value, resolver, depth + 1)
        if len(parts) == 1:
            for name in Node.__slots__:
                setattr(node, name, getattr(parts[0], name))
        elif parts:
            node.kind, node.criterion = "combined", "allOf"
            node.parts = _combined_first(parts)
        node.source = value
        node.has_default = "default" in value
        if "connect.type" in value:
            node.keywords = {**node.keywords, "connect.type": value["connect.type"]}

    def _parts(self, value: dict[str, Any], resolver: Any, depth: int) -> list[Node]:
        parts: list[Node] = []
        if "$ref" in value:
            parts.append(self._reference(value, resolver))
        if "enum" in value:
            values = _expect(value, "enum", list)
            parts.append(Node(kind="enum", source=values, keywords={"enum": values}))
        for criterion in _COMBINED:
            if criterion in value:
                made = [self._node(v, resolver, depth) for v in _expect(value, criterion, list)]
                parts.append(
                    Node(
                        kind="combined",
                        criterion=criterion,
                        parts=_combined_first(made),
                        source={criterion: value[criterion]},
                    )
                )
        if "not" in value:
            forbidden = self._node(value["not"], resolver, depth)
            parts.append(Node(kind="not", source={"not": value["not"]}, parts=[forbidden]))
        if "const" in value:
            parts.append(Node(kind="const", source={"const": value["const"]}))
        return parts + self._typed_parts(value, resolver, depth)

    def _typed_parts(self, value: dict[str, Any], resolver: Any, depth: int) -> list[Node]:
        """Return the parts for `type`, and for keywords of types that it does not name."""
        parts: list[Node] = []
        names = value.get("type", [])
        named = names if isinstance(names, list) else [names]
        for name in named:
            if name not in _TYPES:
                raise InvalidSchemaError(f"unknown type: [{name}]")
        if isinstance(names, list) and "type" in value:
            made = [self._of_type(name, value, resolver, depth) for name in named]
            parts.append(
                Node(kind="combined", criterion="anyOf", parts=made, source=_taken(value, named))
            )
        elif named:
            parts.append(self._of_type(named[0], value, resolver, depth))
        kinds = {"number" if name == "integer" else name for name in named}
        for kind, keywords in self._keywords().items():
            restricting = [k for k in keywords if k in value and k != "format"]
            if kind not in kinds and restricting:
                parts.append(self._of_type(kind, value, resolver, depth))
        if any(name in value for name in _CONDITION):
            branches = {name: value[name] for name in _CONDITION if name in value}
            for branch in branches.values():
                self._node(branch, resolver, depth)
            parts.append(Node(kind="condition", source=branches))
        return parts

    def _keywords(self) -> dict[str, tuple[str, ...]]:
        return {
            "array": (*_ARRAY, *_MODERN_ARRAY) if self._is_modern else _ARRAY,
            "object": (*_OBJECT, *_MODERN_OBJECT) if self._is_modern else _OBJECT,
            "number": _NUMBER,
            "string": _STRING,
        }

    def _of_type(self, name: str, value: dict[str, Any], resolver: Any, depth: int) -> Node:
        kind = "number" if name == "integer" else name
        node = Node(kind=kind, source=_taken(value, [name], self._keywords().get(kind, ())))
        if kind == "array":
            self._fill_array(node, value, resolver, depth)
        elif kind == "object":
            self._fill_object(node, value, resolver, depth)
        for keyword in self._keywords().get(kind, ()):
            if keyword in _SIZES and keyword in value:
                node.keywords[keyword] = int(_number(value, keyword))
            elif keyword in _NUMBER and keyword in value:
                if self._is_draft_4 and keyword.startswith("exclusive"):
                    _expect(value, keyword, bool)  # whether the other limit is excluded
                else:
                    node.keywords[keyword] = _number(value, keyword)
        if kind == "string" and "pattern" in value:
            node.keywords["pattern"] = _compilable(_expect(value, "pattern", str), "pattern")
        if name == "integer":
            node.keywords["integer"] = True
        return node

    def _fill_array(self, node: Node, value: dict[str, Any], resolver: Any, depth: int) -> None:
        first, rest = ("prefixItems", "items") if self._is_modern else ("items", "additionalItems")
        items = value.get(first)
        if isinstance(items, list):
            node.items = [self._node(item, resolver, depth) for item in items]
        elif items is not None and not self._is_modern:
            node.item = self._node(items, resolver, depth)
        if rest in value:
            rest_node = self._node(value[rest], resolver, depth)
            if self._is_modern and not node.items and rest_node.kind not in ("true", "false"):
                node.item = rest_node
            else:
                _set_rest(node, rest_node)
        if "contains" in value:
            self._node(value["contains"], resolver, depth)
            if self._is_modern:
                node.keywords["minContains"] = 1  # unless it is given, see _of_type
        if "unevaluatedItems" in value and self._is_modern:
            node.unevaluated = self._node(value["unevaluatedItems"], resolver, depth)
        if value.get("uniqueItems"):
            node.keywords["uniqueItems"] = True

    def _fill_object(self, node: Node, value: dict[str, Any], resolver: Any, depth: int) -> None:
        for name, schema in _expect(value, "properties", dict, {}).items():
            node.properties[name] = self._node(schema, resolver, depth)
        for pattern, schema in _expect(value, "patternProperties", dict, {}).items():
            _compilable(pattern, "patternProperties")
            node.patterns[pattern] = self._node(schema, resolver, depth)
        required = _expect(value, "required", list, [])
        if not all(isinstance(name, str) for name in required):
            raise InvalidSchemaError(f"#/required: expected strings, found: {dumps(required)}")
        node.required = frozenset(required)
        if "additionalProperties" in value:
            _set_rest(node, self._node(value["additionalProperties"], resolver, depth))
        if "propertyNames" in value:
            self._node(value["propertyNames"], resolver, depth)
        if "unevaluatedProperties" in value and self._is_modern:
            node.unevaluated = self._node(value["unevaluatedProperties"], resolver, depth)
        keywords = ("dependentRequired", "dependentSchemas") if self._is_modern else ()
        for keyword in ("dependencies", *keywords):
            for name, needed in _expect(value, keyword, dict, {}).items():
                if isinstance(needed, list):
                    node.property_dependencies[name] = frozenset(map(str, needed))
                else:
                    node.schema_dependencies[name] = self._node(needed, resolver, depth)

    # -- references --------------------------------------------------------------------------------

    def _reference(self, value: dict[str, Any], resolver: Any) -> Node:
        reference = _expect(value, "$ref", str)
        contents, inner = self._resolved(reference, resolver)
        if isinstance(contents, dict):
            target = self._unfilled(contents)
            self._targets.append((contents, inner))
        else:
            target = self._node(contents, inner, 0)
        return Node(kind="reference", source={"$ref": reference}, target=target)

    def _resolved(self, reference: str, resolver: Any) -> tuple[Any, Any]:
        """Look a reference up; what `$defs` does not have may be in `definitions`.

        The other way round it may not: Confluent's JsonSchema.mergeDefBuckets. A name that is
        relative to the document's id is a reference's name as it stands, too.
        """
        by_name = self._by_name.resolver("")
        elsewhere = reference.replace("#/$defs/", "#/definitions/", 1)
        for looked_in, candidate in (
            (resolver, reference),
            (by_name, reference.removeprefix("./")),
            (resolver, elsewhere),
            (by_name, elsewhere.removeprefix("./")),
        ):
            try:
                found = looked_in.lookup(candidate)
            except (self._unresolvable, ValueError, TypeError, AttributeError, KeyError):
                continue
            return found.contents, found.resolver
        raise InvalidSchemaError(f"Unresolved $ref '{reference}'")


def _set_rest(node: Node, rest: Node) -> None:
    """Say what more properties or items must be; `true` and `false` only say whether there are."""
    if rest.kind == "false":
        node.is_open = False
    elif rest.kind != "true":
        node.rest = rest


def _combined_first(parts: list[Node]) -> list[Node]:
    return sorted(parts, key=lambda part: part.kind != "combined")


def _taken(value: dict[str, Any], types: list[str], keywords: tuple[str, ...] = ()) -> Any:
    return {"type": types, **{keyword: value[keyword] for keyword in keywords if keyword in value}}


def _expect(value: dict[str, Any], keyword: str, kind: type, default: Any = None) -> Any:
    found = value.get(keyword, default)
    if not isinstance(found, kind):
        raise InvalidSchemaError(f"#/{keyword}: expected {kind.__name__}, found: {dumps(found)}")
    return found


def _compilable(pattern: str, keyword: str) -> str:
    fault = fault_of(pattern)
    if fault is not None:
        raise InvalidSchemaError(f"#/{keyword}: {fault}: {pattern}")
    return pattern


def _number(value: dict[str, Any], keyword: str) -> Any:
    number = value[keyword]
    is_number = not isinstance(number, bool | str | list | dict) and number is not None
    if not is_number or (isinstance(number, float) and not math.isfinite(number)):
        raise InvalidSchemaError(f"#/{keyword}: expected type: Number, found: {dumps(number)}")
    _, digits, exponent = Decimal(number).as_tuple()
    if not isinstance(exponent, int) or len(digits) + abs(exponent) > _MAX_DIGITS:
        raise InvalidSchemaError(f"#/{keyword}: a number has more than {_MAX_DIGITS} digits")
    return number
