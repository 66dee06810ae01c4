"""The file given as `--schema`: what JSON values are made of, in Spark's words.

Either as Spark writes a schema (`df.schema.json()`):

    {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": false}]}

or briefly, by examples of its types' names:

    {"id": "long", "tags": ["string"], "customer": {"name": "string", "born": "date"}}

A field of the outermost struct that is not nullable must be there. Timestamps and dates are text in
ISO 8601. Maps are not supported: a field for each key is what makes columns.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from odradek.pipeline.jobs.job_error import JobError

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
    """Raises JobError."""
    try:
        return parse_json_schema(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise JobError(f"the schema cannot be read: {error}") from error
    except JobError as error:
        raise JobError(f"{path}: {error}") from error


def parse_json_schema(text: str) -> pa.StructType:
    """Raises JobError."""
    try:
        kind = _type_of(json.loads(text), "the schema")
    except json.JSONDecodeError as error:
        raise JobError(f"no JSON: {error}") from error
    if not pa.types.is_struct(kind) or not kind.num_fields:
        raise JobError("a schema is a struct with fields")
    return kind


def _type_of(told: Any, place: str) -> pa.DataType:  # it is what the user wrote
    match told:
        case str():
            return _named(told, place)
        case [element]:
            return pa.list_(pa.field("element", _type_of(element, f"{place}[]")))
        case {"type": "struct", "fields": list(fields)}:
            return pa.struct([_field(each, place) for each in fields])
        case {"type": "array", "elementType": element}:
            return pa.list_(pa.field("element", _type_of(element, f"{place}[]")))
        case {"type": "map"}:
            raise JobError(f"{place}: a map is not supported")
        case dict():
            return pa.struct([pa.field(name, _type_of(kind, name)) for name, kind in told.items()])
        case _:
            raise JobError(f"{place}: no type: {json.dumps(told)}")


def _named(name: str, place: str) -> pa.DataType:
    if match := _DECIMAL.fullmatch(name):
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
    elif name in _SIMPLE:
        return _SIMPLE[name]
    known = ", ".join([*_SIMPLE, "decimal(p,s)"])
    raise JobError(f"{place}: no type {name!r}; there are {known}, arrays and structs")


def _field(told: Any, place: str) -> pa.Field:  # it is what the user wrote
    match told:
        case {"name": str(name), "type": kind}:
            return pa.field(name, _type_of(kind, name), nullable=told.get("nullable", True))
        case _:
            raise JobError(f"{place}: a field has a name and a type: {json.dumps(told)}")
