"""Whether what one JSON Schema allows is also allowed by another.

The rules, the names of reasons and their texts are those that Confluent documents for JSON Schema.
What decides most questions about properties is the content model of an object:

- open: more properties may come, of any kind (no additionalProperties, or `true`);
- closed: none may (additionalProperties is false);
- partially open: those that match patternProperties or the schema of additionalProperties.

An optional property can be added to a closed model, because the old one allowed no such property;
to an open one it cannot, because data with that name may be there already with another type. For
the same reason a property may be removed from an open model only. The policy LENIENT permits both.
Items of arrays follow the same rules.

Combined schemas (allOf, anyOf, oneOf) are compared as a matching: each part of the side with
fewer parts needs a compatible partner of its own. Recursive schemas: a pair that is being compared
already counts as compatible, unless an earlier pass found that it is not; passes are repeated until
they find no more such pairs.

Linear in the pairs of nodes that meet; for combined schemas that is the product of their parts.
"""

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from odradek.config.re2_options import bounded_options, pattern_size, re2_library, why_costly
from odradek.coordinator.registry.json_text import dumps

from .effort import Found, first, flat, inside, spend
from .json_schema import JsonSchema, Node

LENIENT = frozenset(
    {
        "ADDITIONAL_PROPERTIES_NARROWED",
        "ADDITIONAL_PROPERTIES_REMOVED",
        "UNEVALUATED_PROPERTIES_NARROWED",
        "UNEVALUATED_PROPERTIES_REMOVED",
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    }
)

_STEPS_OF_A_MATCH = 20  # of a name with a pattern, and one for each part of the pattern
_STEPS_OF_A_VALUE = 4  # of an enum
_EXACT = Context(prec=20_000)  # enough for the digits that json_schema lets numbers have

# A difference: its name, and its place relative to the pair of nodes that are compared.
Difference = tuple[str, tuple[str, ...]]
Differences = Found[Difference]
_Pair = tuple[int, int]

# Keywords of one number: does a higher or a lower value allow less?
_LIMITS = {
    "string": (("maxLength", "MAX_LENGTH"), ("minLength", "MIN_LENGTH")),
    "number": (
        ("maximum", "MAXIMUM"),
        ("minimum", "MINIMUM"),
        ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM"),
        ("exclusiveMinimum", "EXCLUSIVE_MINIMUM"),
    ),
    "object": (("maxProperties", "MAX_PROPERTIES"), ("minProperties", "MIN_PROPERTIES")),
    "array": (
        ("maxItems", "MAX_ITEMS"),
        ("minItems", "MIN_ITEMS"),
        ("maxContains", "MAX_CONTAINS"),
        ("minContains", "MIN_CONTAINS"),
    ),
}


def compatibility(reader: JsonSchema, writer: JsonSchema, *, lenient: bool = False) -> list[str]:
    """Return why data that the writer allows may not be allowed by the reader.

    Raises InvalidSchemaError when the writer has a reference that cannot be resolved.
    """
    ignored = LENIENT if lenient else frozenset()
    known: dict[_Pair, Differences] = {}
    while True:
        comparison = _Comparison(ignored, known)
        differences = comparison.compare(writer.root, reader.root)
        incompatible = {pair: found for pair, found in comparison.results.items() if found}
        if not comparison.assumed or incompatible.keys() == known.keys():
            return first(
                _reason(name, (*above, *path)) for above, (name, path) in flat(differences)
            )
        known = incompatible


class _Comparison:
    """One pass. `old` is the writer's schema, `new` the reader's."""

    def __init__(self, ignored: frozenset[str], known: dict[_Pair, Differences]) -> None:
        self.results: dict[_Pair, Differences] = {}
        self.assumed = False  # whether a pair counted as compatible while it was being compared
        self._ignored = ignored
        self._known = known
        self._open: set[_Pair] = set()
        self._distinct_parts: dict[int, list[Node]] = {}  # of combined nodes

    def compare(self, old: Node | None, new: Node | None) -> Differences:
        """Compare two parts; None: there is none.

        A pair that is met again inside itself counts as compatible, unless the pass before has
        found that it is not.
        """
        if old is None or new is None:
            return self._found("SCHEMA_ADDED") if new is not None else []
        old, new = old.target or old, new.target or new
        spend()
        pair = (id(old), id(new))
        if pair in self.results:
            return self.results[pair]
        if pair in self._open:
            if pair in self._known:
                return self._known[pair]
            self.assumed = True
            return []
        self._open.add(pair)
        differences = self._compare_nodes(old, new)
        self._open.remove(pair)
        self.results[pair] = differences
        return differences

    def _found(self, name: str, *path: str) -> Differences:
        return [] if name in self._ignored else [(name, path)]

    def _compare_nodes(self, old: Node, new: Node) -> Differences:
        if self._matches_one_part(old, new):
            return []
        if old.kind != new.kind:
            if old.kind == "false" or new.is_empty:
                return []
            if old.keywords.get("connect.type") == new.keywords.get("connect.type") == "bytes":
                return []
            return self._found("TYPE_CHANGED")
        compare = _COMPARE.get(old.kind)
        return compare(self, old, new) if compare else []

    def _matches_one_part(self, old: Node, new: Node) -> bool:
        """Whether one side is combined, the other is not, and a part of it decides alone."""
        if new.kind == "combined" and old.kind != "combined":
            if len(new.parts) == 1 or new.criterion != "allOf":
                return any(not self.compare(old, part) for part in new.parts)
        elif old.kind == "combined" and new.kind != "combined":  # noqa: SIM102, the pair of above
            if len(old.parts) == 1 or old.criterion == "allOf":
                return any(not self.compare(part, new) for part in old.parts)
        return False

    # -- one kind each -----------------------------------------------------------------------------

    def _compare_limits(self, old: Node, new: Node) -> Differences:
        differences: Differences = []
        for keyword, name in _LIMITS[old.kind]:
            was, now = old.keywords.get(keyword), new.keywords.get(keyword)
            if now is None or was == now:
                continue
            if was is None:
                differences += self._found(f"{name}_ADDED", keyword)
            elif name.startswith(("MAX", "EXCLUSIVE_MAX")):
                differences += self._found(f"{name}_DECREASED", keyword) if now < was else []
            else:
                differences += self._found(f"{name}_INCREASED", keyword) if now > was else []
        return differences

    def _compare_strings(self, old: Node, new: Node) -> Differences:
        differences = self._compare_limits(old, new)
        was, now = old.keywords.get("pattern"), new.keywords.get("pattern")
        if now is not None and was != now:
            name = "PATTERN_ADDED" if was is None else "PATTERN_CHANGED"
            differences += self._found(name, "pattern")
        return differences

    def _compare_numbers(self, old: Node, new: Node) -> Differences:
        differences = self._compare_limits(old, new)
        was, now = old.keywords.get("multipleOf"), new.keywords.get("multipleOf")
        if now is not None:
            differences += self._compare_multiples(was, Decimal(str(now)))
        if new.keywords.get("integer") and not old.keywords.get("integer"):
            differences += self._found("TYPE_NARROWED")
        return differences

    def _compare_multiples(self, was: Any, now: Decimal) -> Differences:
        if was is None:
            return self._found("MULTIPLE_OF_ADDED", "multipleOf")
        old = Decimal(str(was))
        if old == now:
            return []
        if old and _EXACT.remainder(now, old) == 0:
            return self._found("MULTIPLE_OF_EXPANDED", "multipleOf")
        if now and _EXACT.remainder(old, now) == 0:
            return []
        return self._found("MULTIPLE_OF_CHANGED", "multipleOf")

    def _compare_enums(self, old: Node, new: Node) -> Differences:
        spend(_STEPS_OF_A_VALUE * (len(old.keywords["enum"]) + len(new.keywords["enum"])))
        was = {dumps(value, sort_keys=True) for value in old.keywords["enum"]}
        now = {dumps(value, sort_keys=True) for value in new.keywords["enum"]}
        if was <= now:
            return []
        name = "ENUM_ARRAY_NARROWED" if was >= now else "ENUM_ARRAY_CHANGED"
        return self._found(name, "enum")

    def _compare_constants(self, old: Node, new: Node) -> Differences:
        if _text(old.source) == _text(new.source):
            return []
        return self._found("ENUM_ARRAY_CHANGED", "const")

    def _compare_nots(self, old: Node, new: Node) -> Differences:
        if self.compare(new.parts[0], old.parts[0]):
            return self._found("NOT_TYPE_EXTENDED", "not")
        return []

    def _compare_combined(self, old: Node, new: Node) -> Differences:
        if not _criterion_allows_more(old, new):
            return self._found("COMBINED_TYPE_CHANGED")
        old_parts, new_parts = self._distinct(old), self._distinct(new)
        differences: Differences = []
        if len(old_parts) < len(new_parts) and new.criterion == "allOf":
            differences += self._found("PRODUCT_TYPE_EXTENDED")
        if len(old_parts) > len(new_parts) and old.criterion != "allOf":
            differences += self._found("SUM_TYPE_NARROWED")
        partners = [
            [index for index, part in enumerate(new_parts) if not self.compare(old_part, part)]
            for old_part in old_parts
        ]
        if _matching_size(partners) < min(len(old_parts), len(new_parts)):
            differences += self._found("COMBINED_TYPE_SUBSCHEMAS_CHANGED")
        return differences

    def _distinct(self, node: Node) -> list[Node]:
        found = self._distinct_parts.get(id(node))
        if found is None:
            by_text = {_text(part.source): part for part in node.parts}
            found = self._distinct_parts[id(node)] = list(by_text.values())
        return found

    # -- objects -----------------------------------------------------------------------------------

    def _compare_objects(self, old: Node, new: Node) -> Differences:
        differences = self._compare_required(old, new)
        spend(len(old.properties) + len(new.properties) + len(new.required))
        for name in sorted({*old.properties, *new.properties}):
            differences += inside(self._compare_property(old, new, name), "properties", name)
        differences += inside(self._compare_dependencies(old, new), "dependencies")
        differences += inside(
            self._compare_rest(old, new, "ADDITIONAL_PROPERTIES"), "additionalProperties"
        )
        differences += inside(
            self._compare_unevaluated(old, new, "UNEVALUATED_PROPERTIES"), "unevaluatedProperties"
        )
        return differences + self._compare_limits(old, new)

    def _compare_required(self, old: Node, new: Node) -> Differences:
        differences: Differences = []
        for name in sorted(new.required - old.required):
            has_both = name in old.properties and name in new.properties
            if has_both and not new.properties[name].has_default:
                differences += self._found("REQUIRED_ATTRIBUTE_ADDED", "required", name)
        return differences

    def _compare_property(self, old: Node, new: Node, name: str) -> Differences:
        was, now = old.properties.get(name), new.properties.get(name)
        if was is not None and now is not None:
            return self.compare(was, now)
        if was is not None:
            return self._compare_removed(was, new, name)
        assert now is not None
        return self._compare_added(old, now, name, is_required=name in new.required)

    def _compare_removed(self, was: Node, new: Node, name: str) -> Differences:
        if _is_open(new):
            return []
        covering = _covering(new, name)
        if covering is not None:
            return self._covered(was, covering, "PROPERTY_REMOVED")
        if was.kind == "false":
            return []
        return self._found("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL")

    def _compare_added(self, old: Node, now: Node, name: str, *, is_required: bool) -> Differences:
        if _is_open(old):
            if now.is_empty:
                return []
            what = "REQUIRED_PROPERTY" if is_required else "OPTIONAL_PROPERTY"
            if is_required and now.has_default:
                what += "_WITH_DEFAULT"
            return self._found(f"{what}_ADDED_TO_OPEN_CONTENT_MODEL")
        covering = _covering(old, name)
        differences: Differences = []
        if covering is not None:
            differences += self._covered(covering, now, "PROPERTY_ADDED")
        if is_required and not now.has_default:
            differences += self._found("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL")
        return differences

    def _covered(self, old: Node, new: Node, name: str) -> Differences:
        """Compare a property or item that has one side only with what covers it on the other."""
        differences = self.compare(old, new)
        if not differences:
            return []
        name = f"{name}_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"
        return [*inside(differences), *self._found(name)]

    def _compare_dependencies(self, old: Node, new: Node) -> Differences:
        differences: Differences = []
        for name, now in sorted(new.property_dependencies.items()):
            was = old.property_dependencies.get(name)
            if was is None:
                differences += self._found("DEPENDENCY_ARRAY_ADDED", name)
            elif now > was:
                differences += self._found("DEPENDENCY_ARRAY_EXTENDED", name)
            elif not now <= was:
                differences += self._found("DEPENDENCY_ARRAY_CHANGED", name)
        for name, schema in sorted(new.schema_dependencies.items()):
            if name not in old.schema_dependencies:
                differences += self._found("DEPENDENCY_SCHEMA_ADDED", name)
            else:
                differences += inside(self.compare(old.schema_dependencies[name], schema), name)
        return differences

    def _compare_rest(self, old: Node, new: Node, name: str) -> Differences:
        if old.is_open != new.is_open:
            return [] if new.is_open else self._found(f"{name}_REMOVED")
        if old.rest is None and new.rest is not None:
            return self._found(f"{name}_NARROWED")
        return self.compare(old.rest, new.rest)

    def _compare_unevaluated(self, old: Node, new: Node, name: str) -> Differences:
        was, now = old.unevaluated, new.unevaluated
        if now is None or (was is not None and was.kind == "false" and now.kind != "false"):
            return []
        if now.kind == "false":
            is_same = was is not None and was.kind == "false"
            return [] if is_same else self._found(f"{name}_REMOVED")
        if was is None or (was.is_empty and not now.is_empty):
            return self._found(f"{name}_NARROWED")
        return [] if now.is_empty else self.compare(was, now)

    # -- arrays ------------------------------------------------------------------------------------

    def _compare_arrays(self, old: Node, new: Node) -> Differences:
        differences = inside(self.compare(old.item, new.item), "items")
        for index in range(max(len(old.items), len(new.items))):
            differences += inside(self._compare_item(old, new, index), f"items/{index}")
        differences += inside(self._compare_rest(old, new, "ADDITIONAL_ITEMS"), "additionalItems")
        differences += inside(
            self._compare_unevaluated(old, new, "UNEVALUATED_ITEMS"), "unevaluatedItems"
        )
        differences += self._compare_limits(old, new)
        if new.keywords.get("uniqueItems") and not old.keywords.get("uniqueItems"):
            differences += self._found("UNIQUE_ITEMS_ADDED", "uniqueItems")
        return differences

    def _compare_item(self, old: Node, new: Node, index: int) -> Differences:
        was = old.items[index] if index < len(old.items) else None
        now = new.items[index] if index < len(new.items) else None
        if was is not None and now is not None:
            return self.compare(was, now)
        if was is not None:
            if _is_open(new):
                return []
            covering = _covering(new, None)
            if covering is not None:
                return self._covered(was, covering, "ITEM_REMOVED")
            if was.kind == "false":
                return []
            return self._found("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL")
        assert now is not None
        if _is_open(old):
            return [] if now.is_empty else self._found("ITEM_ADDED_TO_OPEN_CONTENT_MODEL")
        covering = _covering(old, None)
        return [] if covering is None else self._covered(covering, now, "ITEM_ADDED")


_COMPARE: dict[str, Callable[[_Comparison, Node, Node], Differences]] = {
    "string": _Comparison._compare_strings,
    "number": _Comparison._compare_numbers,
    "enum": _Comparison._compare_enums,
    "const": _Comparison._compare_constants,
    "combined": _Comparison._compare_combined,
    "not": _Comparison._compare_nots,
    "object": _Comparison._compare_objects,
    "array": _Comparison._compare_arrays,
}


def _is_open(node: Node) -> bool:
    """Whether more properties, or items, of any kind are allowed."""
    if not node.is_open or node.rest is not None or node.patterns:
        return False
    return node.unevaluated is None or node.unevaluated.is_empty


def _covering(node: Node, name: str | None) -> Node | None:
    """Return what a partially open model demands of a property that it does not name."""
    if name is not None:
        for pattern, schema in node.patterns.items():
            spend(_STEPS_OF_A_MATCH + pattern_size(pattern).parts)
            if _matches(pattern, name):
                return schema
    if node.rest is not None:
        return node.rest
    if node.is_open and node.unevaluated is not None and node.unevaluated.kind != "false":
        return None if node.unevaluated.is_empty else node.unevaluated
    return None


def _matches(pattern: str, name: str) -> bool:
    """Whether a name has a match.

    A pattern that RE2 does not know (look-ahead), or that costs too much, has none.
    """
    if why_costly(pattern) is not None:
        return False
    re2 = re2_library()
    try:
        return re2.compile(pattern, options=bounded_options()).search(name) is not None
    except re2.error:
        return False


def _criterion_allows_more(old: Node, new: Node) -> bool:
    """Whether a change of allOf, anyOf or oneOf can be compatible at all."""
    if old.criterion == new.criterion or new.criterion == "anyOf":
        return True
    if len(old.parts) == 1 and (len(new.parts) == 1 or new.criterion == "oneOf"):
        return True
    return len(new.parts) == 1 and old.criterion == "allOf"


def _text(source: Any) -> str:
    text = dumps(source, sort_keys=True)
    spend(len(text) // 16)
    return text


def _matching_size(partners: list[list[int]]) -> int:
    """Return how many can have a partner of their own at once (augmenting paths)."""
    taken: dict[int, int] = {}

    def place(index: int, tried: set[int]) -> bool:
        for partner in partners[index]:
            spend()
            if partner in tried:
                continue
            tried.add(partner)
            if partner not in taken or place(taken[partner], tried):
                taken[partner] = index
                return True
        return False

    return sum(place(index, set()) for index in range(len(partners)))


# -- texts -----------------------------------------------------------------------------------------

_NOT_PRESENT = "The keyword at path '{path}' in the %s schema is not present in the %s schema"
_MORE = "The value at path '{path}' in the %s schema is more than its value in the %s schema"
_LESS = "The value at path '{path}' in the %s schema is less than its value in the %s schema"
_DIFFERENT = "The value at path '{path}' is different between the %s and %s schema"
_FEWER_PARTS = (
    "An array or combined type at path '{path}' has fewer elements in the %s schema than the %s"
    " schema"
)
_MORE_PARTS = (
    "An array or combined type at path '{path}' has more elements in the %s schema than the %s"
    " schema"
)
_OTHER_TYPE = "A type at path '{path}' is different between the %s schema and the %s schema"
_TEXTS = {
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": "The %s schema has an unopen content model"
    " and has a required property at path '{path}' which is missing in the %s schema",
    "MULTIPLE_OF_EXPANDED": _MORE,
    "PATTERN_CHANGED": _DIFFERENT,
    "MULTIPLE_OF_CHANGED": _DIFFERENT,
    "DEPENDENCY_ARRAY_CHANGED": _DIFFERENT,
    "TYPE_CHANGED": _OTHER_TYPE,
    "TYPE_NARROWED": _OTHER_TYPE,
    "COMBINED_TYPE_CHANGED": _OTHER_TYPE,
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": _OTHER_TYPE,
    "ENUM_ARRAY_CHANGED": _OTHER_TYPE,
    "SCHEMA_ADDED": "",
}
_TEXTS_BY_END = {
    "_ADDED_TO_OPEN_CONTENT_MODEL": "The %s schema has an open content model and has a property or"
    " item at path '{path}' which is missing in the %s schema",
    "_REMOVED_FROM_CLOSED_CONTENT_MODEL": "The %s has a closed content model and is missing a"
    " property or item present at path '{path}' in the %s schema",
    "_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "A property or item is missing in the"
    " %s schema but present at path '{path}' in the %s schema and is not covered by its partially"
    " open content model",
    "_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "The %s schema has a property or item at"
    " path '{path}' which is missing in the %s schema and is not covered by its partially open"
    " content model",
    "_ADDED": _NOT_PRESENT,
    "_REMOVED": _NOT_PRESENT,
    "_INCREASED": _MORE,
    "_DECREASED": _LESS,
    "_NARROWED": _FEWER_PARTS,
    "_EXTENDED": _MORE_PARTS,
}


def _reason(name: str, path: tuple[str, ...]) -> str:
    text = _TEXTS.get(name)
    if text is None:
        text = next(text for end, text in _TEXTS_BY_END.items() if name.endswith(end))
    description = text.format(path="#/" + "/".join(path))
    return f'{{errorType:"{name}", description:"{description}\'}}'
