"""Decodes a column of values that were written with the schemas of a registry.

    byte 0        0
    bytes 1 to 4  id of the writer's schema, big-endian
    then          the value in Avro, JSON or, after the indexes of its message, Protobuf

The columns are those of the subject's latest schema at the time of `find_schema`. A value of
another schema is read as the format's rules of evolution say: Avro resolves the writer's schema
into this one, Protobuf goes by field numbers, and JSON must match this schema.

A value that cannot be decoded is null, with an error beside it. An error of the registry itself is
raised: the value may be good.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from .avro_format import avro_decoder, avro_type
from .formats import RegistryFormat, SchemaError
from .json_format import json_decoder, json_type
from .protobuf_format import protobuf_decoder, protobuf_type

Decoder = Callable[[bytes], Any]  # from a value with its header to a dictionary


class _Kind(NamedTuple):
    name: str  # in the registry
    type: Callable[[str], pa.StructType]
    decoder: Callable[[Schema, SchemaRegistryClient], Decoder]


_KINDS: Mapping[RegistryFormat, _Kind] = {
    "avro": _Kind("AVRO", avro_type, avro_decoder),
    "protobuf": _Kind("PROTOBUF", protobuf_type, protobuf_decoder),
    "json-schema": _Kind("JSON", json_type, json_decoder),
}
_NO_SUCH_SCHEMA = 404


class RegistryError(RuntimeError):
    """The registry does not answer, or refuses; or the schema has no columns."""


class Decoded(NamedTuple):
    """A struct for each value, and an error for each value that has no struct. Null is null."""

    values: pa.StructArray
    errors: pa.StringArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueSchema:
    """The schema that values are read with. It can be pickled, for tasks."""

    format: RegistryFormat
    schema: Schema
    client: Mapping[str, str] = field(repr=False)  # settings of the registry's client

    @property
    def type(self) -> pa.StructType:
        """The Arrow type of the values. Raises RegistryError."""
        try:
            return _KINDS[self.format].type(str(self.schema.schema_str))
        except SchemaError as error:
            raise RegistryError(f"the {self.format} schema: {error}") from None

    def decoder(self) -> "ValueDecoder":
        """Return what decodes, with a client of its own."""
        return ValueDecoder(self)


class ValueDecoder:
    """Decodes columns. It remembers the schemas that the registry has returned."""

    def __init__(self, schema: ValueSchema) -> None:
        self._type = schema.type
        client = _Client(dict(schema.client))
        self._decode = _KINDS[schema.format].decoder(schema.schema, client)

    def decode(self, values: pa.BinaryArray) -> Decoded:
        """Decode each value. Raises RegistryError if the registry does not answer."""
        rows, errors = zip(*map(self._row, values.to_pylist()), strict=True) if values else ((), ())
        try:
            structs = pa.array(rows, self._type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            rows, errors = self._fitting(rows, errors)
            structs = pa.array(rows, self._type)
        return Decoded(structs, pa.array(errors, pa.string()))

    def _row(self, value: bytes | None) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        try:
            return self._decode(value), None
        except RegistryError:
            raise
        except SchemaRegistryError:
            return None, f"the registry has no schema {int.from_bytes(value[1:5], 'big')}"
        except Exception as error:  # noqa: BLE001 # the decoders raise many types for bad bytes
            return None, _message(error)

    def _fitting(
        self, rows: tuple[Any, ...], errors: tuple[str | None, ...]
    ) -> tuple[tuple[Any, ...], tuple[str | None, ...]]:
        """Replace the values that do not fit the type, e.g. too large integers, by errors."""

        def checked() -> Iterator[tuple[Any, str | None]]:
            for row, error in zip(rows, errors, strict=True):
                try:
                    pa.array([row], self._type)
                except (pa.ArrowException, OverflowError, TypeError, ValueError) as misfit:
                    yield None, _message(misfit)
                else:
                    yield row, error

        fitting, messages = zip(*checked(), strict=True)
        return fitting, messages


def find_schema(format_: RegistryFormat, subject: str, client: Mapping[str, str]) -> ValueSchema:
    """Ask the registry for the latest schema of a subject. Raises RegistryError."""
    serialized = "serialized" if format_ == "protobuf" else None  # the registry compiles .proto
    try:
        registry = SchemaRegistryClient(dict(client))
        found = registry.get_latest_version(subject, fmt=serialized).schema
    except Exception as error:  # those of the client, and of its HTTP library
        raise RegistryError(f"the schema of {subject}: {error}") from error
    if found.schema_type != _KINDS[format_].name:
        raise RegistryError(f"the schema of {subject} is {found.schema_type}, not {format_}")
    if found.references:
        raise RegistryError(f"the schema of {subject} refers to others, which is not supported")
    schema = ValueSchema(format=format_, schema=found, client=dict(client))
    _ = schema.type  # raises now if it has no columns
    return schema


class _Client(SchemaRegistryClient):
    """Raises RegistryError if the registry does not answer, or with another error than 404."""

    def get_schema(self, *args: Any, **kwargs: Any) -> Schema:
        try:
            return super().get_schema(*args, **kwargs)
        except Exception as error:
            if getattr(error, "http_status_code", None) == _NO_SUCH_SCHEMA:
                raise
            raise RegistryError(f"the schema registry: {error}") from error


def _message(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:200]
