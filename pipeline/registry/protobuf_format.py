"""Protobuf messages as Arrow structs: those of a file's first message, as registries name it.

Enums are strings. Unsigned 64-bit integers are signed, because Spark has no unsigned ones.
Timestamps and wrappers are columns; other well-known types are the structs that they are.
"""

import base64
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from .formats import SchemaError

# 0 and the id of a schema. The indexes of the message follow: those of the messages around it, and
# its own. Those of the first one are [0], written as a count of 0, or as a count of 1 (zigzag), 0.
_HEADER_BYTES = 5
_FIRST_MESSAGE = (b"\0", b"\2\0")
_TIMESTAMP = "google.protobuf.Timestamp"
_WRAPPERS = frozenset(
    f"google.protobuf.{name}" for name in wrappers_pb2.DESCRIPTOR.message_types_by_name
)
_SCALARS: Mapping[int, pa.DataType] = {
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT64: pa.int64(),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
}


def protobuf_type(text: str) -> pa.StructType:
    """Return the type of the first message of a serialized file. Raises SchemaError."""
    return _struct(_message(text), "", frozenset())


def protobuf_decoder(schema: Schema, client: SchemaRegistryClient) -> Callable[[bytes], Any]:
    """Return a function from a value to a dictionary of the message's fields."""
    del client  # fields have numbers: the writer's schema is not needed
    deserialize = ProtobufDeserializer(
        GetMessageClass(_message(str(schema.schema_str))),
        {"use.deprecated.format": False, "subject.name.strategy": lambda _context, _name: None},
    )

    def decode(value: bytes) -> Any:
        message = deserialize(value)
        if not value.startswith(_FIRST_MESSAGE, _HEADER_BYTES):
            raise ValueError("it is another message than the first of the file")
        return _fields(message)

    return decode


def _message(text: str) -> Descriptor:
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
        file.name = file.name or "value.proto"
        pool.Add(file)
        return next(iter(pool.FindFileByName(file.name).message_types_by_name.values()))
    except StopIteration:
        raise SchemaError("the file has no message") from None
    except (ValueError, TypeError) as error:
        raise SchemaError(f"the registry gives no serialized file: {error}") from None


def _struct(message: Descriptor, place: str, within: frozenset[str]) -> pa.StructType:
    if message.full_name in within:
        raise SchemaError(f"{place.lstrip('.')}: {message.full_name} contains itself")
    within |= {message.full_name}
    return pa.struct(
        [(field.name, _type(field, f"{place}.{field.name}", within)) for field in message.fields]
    )


def _type(field: FieldDescriptor, place: str, within: frozenset[str]) -> pa.DataType:
    entry = _map_entry(field)
    if entry is not None:
        key, value = entry.fields
        return pa.map_(_single(key, place, within), _single(value, f"{place}[]", within))
    found = _single(field, place, within)
    return pa.list_(found) if field.is_repeated else found


def _single(field: FieldDescriptor, place: str, within: frozenset[str]) -> pa.DataType:
    message = field.message_type
    if message is None:
        if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            return pa.binary() if field.type == FieldDescriptor.TYPE_BYTES else pa.string()
        return _SCALARS[field.cpp_type]
    if message.full_name == _TIMESTAMP:
        return pa.timestamp("us", "UTC")
    if message.full_name in _WRAPPERS:
        return _single(message.fields[0], place, within)
    return _struct(message, place, within)


def _fields(message: Any) -> dict[str, Any]:
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def _field(message: Any, field: FieldDescriptor) -> Any:
    value = getattr(message, field.name)
    entry = _map_entry(field)
    if entry is not None:
        return [(key, _value(value[key], entry.fields[1])) for key in value]
    if field.is_repeated:
        return [_value(each, field) for each in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(value, field)


def _value(value: Any, field: FieldDescriptor) -> Any:
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    message = field.message_type
    if message is None:
        return value
    if message.full_name == _TIMESTAMP:
        return value.seconds * 1_000_000 + value.nanos // 1000
    if message.full_name in _WRAPPERS:
        return value.value
    return _fields(value)


def _map_entry(field: FieldDescriptor) -> Descriptor | None:
    message = field.message_type
    return message if message is not None and message.GetOptions().map_entry else None
