"""Avro schemas as Arrow types.

Enums and UUIDs are strings; times of day and durations are what they are stored as, because Spark
has no such types. A union of null and one other type is a nullable column; other unions have no
column.
"""

import functools
import io
import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

import fastavro
import pyarrow as pa
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from .formats import SchemaError

_HEADER = struct.Struct(">BI")
_UTC = pa.timestamp("us", "UTC")
_PRIMITIVES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): _UTC,
    ("long", "timestamp-micros"): _UTC,
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}


def avro_type(text: str) -> pa.StructType:
    """Return the type of a record. Raises SchemaError."""
    found = _Types().of(json.loads(text), "")
    if not pa.types.is_struct(found):
        raise SchemaError("it is not a record, so it has no columns")
    return found


def avro_decoder(schema: Schema, client: SchemaRegistryClient) -> Callable[[bytes], Any]:
    """Return a function from a value to a dictionary of the reader's schema.

    confluent-kafka's deserializer uses fastavro, too, but expands the schema for each value, which
    takes four times as long.
    """
    reader = _parsed(schema)

    @functools.cache
    def writer(schema_id: int) -> Any:
        return _parsed(client.get_schema(schema_id))

    def decode(value: bytes) -> Any:
        magic, schema_id = _HEADER.unpack_from(value)
        if magic:
            raise ValueError("it does not begin with 0 and the id of a schema")
        return fastavro.schemaless_reader(
            io.BytesIO(value[_HEADER.size :]), writer(schema_id), reader
        )

    return decode


def _parsed(schema: Schema) -> Any:
    return fastavro.parse_schema(_without_other_logical_types(json.loads(str(schema.schema_str))))


class _Types:
    def __init__(self) -> None:
        self._named: dict[str, pa.DataType | None] = {}  # None while it is being made

    def of(self, schema: Any, place: str) -> pa.DataType:
        """Return the type of a schema, or of a name. Raises SchemaError."""
        if isinstance(schema, list):
            return self._union(schema, place)
        if isinstance(schema, str):
            return self._by_name(schema, place)
        if isinstance(schema["type"], dict | list):
            return self.of(schema["type"], place)
        if "name" in schema:
            return self._named_type(schema, place)
        return self._unnamed_type(schema, place)

    def _named_type(self, schema: Any, place: str) -> pa.DataType:
        space, _, name = schema["name"].rpartition(".")
        names = {name, f"{schema.get('namespace', space)}.{name}"}
        self._named |= dict.fromkeys(names)
        match schema["type"]:
            case "record":
                found = self._record(schema["fields"], place)
            case "enum":
                found = pa.string()
            case _:
                found = _decimal(schema) or pa.binary()
        self._named |= dict.fromkeys(names, found)
        return found

    def _unnamed_type(self, schema: Any, place: str) -> pa.DataType:
        kind = schema["type"]
        match kind:
            case "array":
                return pa.list_(self.of(schema["items"], f"{place}[]"))
            case "map":
                return pa.map_(pa.string(), self.of(schema["values"], f"{place}[]"))
            case "bytes":
                return _decimal(schema) or pa.binary()
        return _LOGICAL.get((kind, schema.get("logicalType", ""))) or self._by_name(kind, place)

    def _record(self, fields: Any, place: str) -> pa.StructType:
        return pa.struct(
            [
                (field["name"], self.of(field["type"], f"{place}.{field['name']}"))
                for field in fields
            ]
        )

    def _union(self, branches: list[Any], place: str) -> pa.DataType:
        others = [branch for branch in branches if branch != "null"]
        if len(others) != 1:
            raise SchemaError(f"{place.lstrip('.')}: a union of several types has no column")
        return self.of(others[0], place)

    def _by_name(self, name: str, place: str) -> pa.DataType:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        found = self._named.get(name) or self._named.get(name.rpartition(".")[2])
        if found is None:
            raise SchemaError(f"{place.lstrip('.')}: {name} contains itself or is unknown")
        return found


def _decimal(schema: Any) -> pa.DataType | None:
    if schema.get("logicalType") != "decimal":
        return None
    return pa.decimal128(schema["precision"], schema.get("scale", 0))


def _without_other_logical_types(schema: Any) -> Any:
    """Leave out what would be decoded to objects that are not of the type above.

    A logical type beside a union, or beside another schema, is none: readers of Avro ignore it.
    """
    if isinstance(schema, list):
        return [_without_other_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: value if key == "default" else _without_other_logical_types(value)
        for key, value in schema.items()
    }
    kind, logical = kept.get("type"), kept.get("logicalType")
    if not isinstance(kind, str) or (logical != "decimal" and (kind, logical) not in _LOGICAL):
        kept.pop("logicalType", None)
    return kept
