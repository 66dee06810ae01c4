"""The formats of schemas: parsing, the text that is stored, and compatibility.

Reading order: this file (what the registry calls), effort, avro, avro_compatibility, json_schema,
java_patterns, json_compatibility, protobuf (protobuf_file, protobuf_parser, protobuf_names,
protobuf_text, protobuf_descriptor, protobuf_serialized), protobuf_compatibility. A format is
imported when its first schema is parsed, or before (broker/registry/first_imports.py).
"""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol, Self

from odradek.coordinator.registry.errors import InvalidSchemaError
from odradek.coordinator.registry.schemas import AVRO, JSON, PROTOBUF


class Parsed(Protocol):
    """A parsed schema of one format."""

    def canonical(self) -> str:
        """Return the text by which the registry stores the schema, and knows it again."""

    def normalized(self) -> Self:
        """Return the schema without what has no meaning, such as the order of attributes.

        Raises InvalidSchemaError.
        """

    def field_names(self) -> Iterable[str]:
        """Return the names of the fields at the top level."""

    def check_fields(self) -> None:
        """Check what `validateFields` of a configuration asks for. Raises InvalidSchemaError."""


class _Format(NamedTuple):
    parsing: str  # a module with `parse`
    comparing: str  # a module with `compatibility`


_FORMATS = {
    AVRO: _Format("avro", "avro_compatibility"),
    JSON: _Format("json_schema", "json_compatibility"),
    PROTOBUF: _Format("protobuf", "protobuf_compatibility"),
}


# By a type and the name of a format: the method of its parsed schemas.
_TEXTS = {(AVRO, "resolved"): "inlined", (PROTOBUF, "serialized"): "serialized"}


def parse(schema_type: str, text: str, references: Mapping[str, str], *, is_new: bool) -> Parsed:
    """Parse a schema whose references have these texts, each after those that it needs itself.

    `is_new`: it is about to be registered, so more is checked than for a stored one. May be long:
    linear in the texts, 1 to 10 s for a megabyte. Raises InvalidSchemaError.
    """
    if schema_type not in _FORMATS:
        raise InvalidSchemaError(f"Invalid schema type {schema_type}")
    try:
        parsed: Parsed = _function(_FORMATS[schema_type].parsing, "parse")(
            text, references, is_new=is_new
        )
    except RecursionError:
        raise InvalidSchemaError("nested too deeply") from None
    return parsed


def formatted(schema_type: str, parsed: Parsed, name: str) -> str:
    """Return the text of a schema in a format that clients ask for by name; else the stored form.

    `resolved`: Avro with its references in place. `serialized`: Protobuf as a FileDescriptorProto
    in base64. May be long, as `parse`. Raises InvalidSchemaError.
    """
    function = _TEXTS.get((schema_type, name))
    return parsed.canonical() if function is None else str(getattr(parsed, function)())


def compatibility(
    schema_type: str, reader: Parsed, writer: Parsed, *, lenient: bool = False
) -> list[str]:
    """Return the reasons why the reader's schema cannot read what the writer's allows.

    Two `%s` in a reason stand for the reader's and the writer's schema. `lenient` counts for JSON
    Schema. May be long: see the modules. Raises InvalidSchemaError.
    """
    compare = _function(_FORMATS[schema_type].comparing, "compatibility")
    reasons: list[str] = (
        compare(reader, writer, lenient=lenient) if schema_type == JSON else compare(reader, writer)
    )
    return reasons


def _function(module: str, name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(import_module(f".{module}", __name__), name)
    return function
