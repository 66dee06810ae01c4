"""Parses the file given as `--schema`: the schema of JSON values, with Spark's type names.

It is either a schema as Spark writes it (`df.schema.json()`):

    {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": false}]}

or an example object whose values are names of types:

    {"id": "long", "tags": ["string"], "customer": {"name": "string", "born": "date"}}

A field of the outermost struct that is not nullable is required. Timestamps and dates are text in
ISO 8601. Maps are not supported: columns need a field for each key.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from odradek.pipeline.jobs import JobError

_SIMPLE: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "int": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
}
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")


def read_json_schema(path: Path) -> pa.StructType:
    """Read and parse the file. Raises JobError."""
    try:
        return parse_json_schema(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(f"cannot read the schema: {error}") from error
    except JobError as error:
        raise JobError(f"{path}: {error}") from error


def parse_json_schema(text: str) -> pa.StructType:
    """Parse a schema. Raises JobError."""
    try:
        kind = _type_of(json.loads(text), "the schema")
    except json.JSONDecodeError as error:
        raise JobError(f"not JSON: {error}") from error
    if not pa.types.is_struct(kind) or not kind.num_fields:
        raise JobError("a schema must be a struct with fields")
    return kind


def _type_of(description: Any, place: str) -> pa.DataType:  # any JSON value
    match description:
        case str():
            return _simple_type(description, place)
        case [element] | {"type": "array", "elementType": element}:
            return pa.list_(pa.field("element", _type_of(element, f"{place}[]")))
        case {"type": "struct", "fields": list(fields)}:
            return pa.struct([_field(each, place) for each in fields])
        case {"type": "map"}:
            raise JobError(f"{place}: a map is not supported")
        case dict():
            fields = [pa.field(name, _type_of(kind, name)) for name, kind in description.items()]
            return pa.struct(fields)
        case _:
            raise JobError(f"{place}: not a type: {json.dumps(description)}")


def _simple_type(name: str, place: str) -> pa.DataType:
    if match := _DECIMAL.fullmatch(name):
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
    elif name in _SIMPLE:
        return _SIMPLE[name]
    known = ", ".join([*_SIMPLE, "decimal(p,s)"])
    raise JobError(f"{place}: unknown type {name!r}; types are {known}, arrays and structs")


def _field(description: Any, place: str) -> pa.Field:  # any JSON value
    match description:
        case {"name": str(name), "type": kind}:
            nullable = description.get("nullable", True)
            return pa.field(name, _type_of(kind, name), nullable=nullable)
        case _:
            raise JobError(f"{place}: a field needs a name and a type: {json.dumps(description)}")
