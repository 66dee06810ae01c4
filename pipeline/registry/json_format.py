"""JSON schemas as Arrow types.

An object without named properties is a map. Dates and times are strings, as they are in JSON. A
schema that allows values of several types has no column, except that null may be one of them.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer

from .formats import SchemaError

_SCALARS: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}
_NULL = {"type": "null"}


def json_type(text: str) -> pa.StructType:
    """Return the type of an object. Raises SchemaError."""
    root = json.loads(text)
    found = _type(root, root, "", frozenset())
    if not pa.types.is_struct(found):
        raise SchemaError("it is not of an object with properties, so it has no columns")
    return found


def json_decoder(schema: Schema, client: SchemaRegistryClient) -> Callable[[bytes], Any]:
    """Return a function from a value to a dictionary that matches the schema."""
    del client  # the text says it all
    deserialize: Callable[[bytes], Any] = JSONDeserializer(
        schema, conf={"subject.name.strategy": lambda _context, _name: None}
    )
    return deserialize


def _type(schema: Any, root: Any, place: str, within: frozenset[str]) -> pa.DataType:
    if "$ref" in schema:
        return _referenced(schema["$ref"], root, place, within)
    kinds = schema.get("type", "string" if "enum" in schema else None)
    for branches in (schema.get("oneOf"), schema.get("anyOf")):
        if branches:
            return _type(
                _single([each for each in branches if each != _NULL], place), root, place, within
            )
    if isinstance(kinds, list):
        kinds = _single([each for each in kinds if each != "null"], place)
    if kinds == "object":
        return _object(schema, root, place, within)
    if kinds == "array" and isinstance(schema.get("items"), dict):
        return pa.list_(_type(schema["items"], root, f"{place}[]", within))
    if kinds not in _SCALARS:
        raise SchemaError(f"{place.lstrip('.')}: a value of this type has no column: {kinds}")
    return _SCALARS[kinds]


def _object(schema: Any, root: Any, place: str, within: frozenset[str]) -> pa.DataType:
    fields = schema.get("properties")
    if fields:
        return pa.struct(
            [(name, _type(each, root, f"{place}.{name}", within)) for name, each in fields.items()]
        )
    values = schema.get("additionalProperties")
    if not isinstance(values, dict):
        raise SchemaError(f"{place.lstrip('.')}: an object without properties has no column")
    return pa.map_(pa.string(), _type(values, root, f"{place}[]", within))


def _single(kinds: list[Any], place: str) -> Any:
    if len(kinds) != 1:
        raise SchemaError(f"{place.lstrip('.')}: a value of several types has no column")
    return kinds[0]


def _referenced(reference: str, root: Any, place: str, within: frozenset[str]) -> pa.DataType:
    if reference in within or not reference.startswith("#/"):
        raise SchemaError(f"{place.lstrip('.')}: {reference} contains itself or is elsewhere")
    found = root
    for part in reference[2:].split("/"):
        found = found[part]
    return _type(found, root, place, within | {reference})
