"""Values of a schema registry as Arrow columns. The registry is a stub with a real HTTP server."""

import json
import pickle
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2, wrappers_pb2
from google.protobuf.message_factory import GetMessageClass

from odradek.pipeline.registry.formats import RegistryFormat
from odradek.pipeline.registry.values import RegistryError, ValueSchema, find_schema
from tests.support.schema_registry import (
    SchemaRegistry,
    avro,
    framed,
    record,
    schema_registry,
    serialized,
)

SUBJECT = "orders-value"
AT = datetime(2026, 11, 25, 12, 30, 1, 123000, UTC)


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as found:
        yield found


def found_schema(registry: SchemaRegistry, format_: RegistryFormat = "avro") -> ValueSchema:
    return find_schema(format_, SUBJECT, {"url": registry.url, "max.retries": 0})


def decoded(schema: ValueSchema, values: Sequence[bytes | None]) -> tuple[list[Any], list[Any]]:
    found = pickle.loads(pickle.dumps(schema)).decoder().decode(pa.array(values, pa.binary()))
    assert found.values.type == schema.type
    return found.values.to_pylist(), found.errors.to_pylist()


# --- Avro

KINDS = record(
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"]},
    {
        "name": "price",
        "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    },
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "key", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "noon", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}},
    {"name": "before", "type": ["null", "State"]},
    {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "counts", "type": {"type": "map", "values": "int"}},
    {
        "name": "inner",
        "type": {"type": "record", "name": "In", "fields": [{"name": "x", "type": "double"}]},
    },
)
VALUE = {
    "id": 7,
    "name": "é",
    "price": Decimal("12.50"),
    "at": AT,
    "day": date(2026, 11, 25),
    "key": "7f3c6f5e-0000-4000-8000-000000000001",
    "noon": 43_200_000,
    "state": "OLD",
    "before": None,
    "hash": b"ab",
    "tags": ["a", "b"],
    "counts": [("n", 1)],
    "inner": {"x": 0.5},
}


def test_each_kind_of_avro_value_has_a_column(registry: SchemaRegistry) -> None:
    number = registry.register(SUBJECT, KINDS)
    plain = KINDS.replace('"logicalType": "time-millis"', '"x": 0')
    data = avro(plain, VALUE | {"counts": {"n": 1}})
    rows, errors = decoded(found_schema(registry), [framed(number, data), None])
    assert rows == [VALUE, None]
    assert errors == [None, None]


@pytest.mark.parametrize("kind", [["null", "long"], {"type": "long"}])
def test_a_logical_type_beside_the_type_that_it_is_meant_for_is_ignored(
    registry: SchemaRegistry, kind: object
) -> None:
    text = record({"name": "at", "type": kind, "logicalType": "timestamp-millis"})
    plain = record({"name": "at", "type": kind})
    number = registry.register(SUBJECT, text)
    values = [framed(number, avro(plain, {"at": 7}))]
    assert decoded(found_schema(registry), values) == ([{"at": 7}], [None])


def test_the_default_of_a_record_may_have_a_field_named_like_a_logical_type(
    registry: SchemaRegistry,
) -> None:
    inner = record({"name": "logicalType", "type": "string"}, name="In")
    default = {"logicalType": "x"}
    old = registry.register(SUBJECT, record({"name": "id", "type": "long"}))
    field = {"name": "in", "type": json.loads(inner), "default": default}
    registry.register(SUBJECT, record({"name": "id", "type": "long"}, field))
    values = [framed(old, avro(record({"name": "id", "type": "long"}), {"id": 1}))]
    assert decoded(found_schema(registry), values) == ([{"id": 1, "in": default}], [None])


def test_avro_values_of_older_and_newer_schemas_are_read_as_the_latest_at_the_start(
    registry: SchemaRegistry,
) -> None:
    old = record({"name": "id", "type": "int"}, {"name": "gone", "type": "string"})
    now = record({"name": "id", "type": "long"}, {"name": "n", "type": "int", "default": 3})
    new = record(*json.loads(now)["fields"], {"name": "more", "type": "int"})
    numbers = [registry.register(SUBJECT, each) for each in (old, now)]
    schema = found_schema(registry)
    numbers.append(registry.register(SUBJECT, new))
    values = [
        framed(numbers[0], avro(old, {"id": 1, "gone": "x"})),
        framed(numbers[1], avro(now, {"id": 2, "n": 4})),
        framed(numbers[2], avro(new, {"id": 3, "n": 5, "more": 6})),
    ]
    rows, errors = decoded(schema, values * 2)
    assert rows == [{"id": 1, "n": 3}, {"id": 2, "n": 4}, {"id": 3, "n": 5}] * 2
    assert errors == [None] * 6
    asked = [path for path in registry.requests if path.startswith("/schemas/ids/")]
    assert len(asked) == 3, "each schema is asked for once"


def test_a_value_that_cannot_be_decoded_is_null_with_an_error(registry: SchemaRegistry) -> None:
    text = record({"name": "id", "type": "long"})
    other = record({"name": "other", "type": "string"}, name="Other")
    number = registry.register(SUBJECT, text)
    unlike = registry.register("others-value", other)
    good = framed(number, avro(text, {"id": 5}))
    bad = [
        b"",
        b"\0\0",
        b'{"id": 5}',
        framed(number, b"\x80"),
        framed(99, b"\x02"),
        framed(unlike, avro(other, {"other": "x"})),
    ]
    rows, errors = decoded(found_schema(registry), [good, *bad, good])
    assert rows == [{"id": 5}, *[None] * len(bad), {"id": 5}]
    assert errors[0] is errors[-1] is None
    assert all(errors[1:-1])
    assert errors[5] == "the registry has no schema 99"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ('"string"', "it is not a record"),
        (record({"name": "a", "type": ["int", "string"]}), "a: a union of several types"),
        (
            record({"name": "next", "type": ["null", "Order"]}),
            "next: Order contains itself or is unknown",
        ),
    ],
)
def test_an_avro_schema_without_columns_is_refused(
    registry: SchemaRegistry, schema: str, message: str
) -> None:
    registry.register(SUBJECT, schema)
    with pytest.raises(RegistryError, match=message):
        found_schema(registry)


# --- the registry


def test_what_the_registry_refuses_is_raised_and_not_taken_for_a_bad_value(
    registry: SchemaRegistry,
) -> None:
    with pytest.raises(RegistryError, match=r"the schema of orders-value: .*not found"):
        found_schema(registry)
    text = record({"name": "id", "type": "long"})
    number = registry.register(SUBJECT, text)
    with pytest.raises(RegistryError, match="is AVRO, not json-schema"):
        found_schema(registry, "json-schema")
    decoder = found_schema(registry).decoder()
    registry.failure = 500
    with pytest.raises(RegistryError, match="the schema registry: it is broken"):
        decoder.decode(pa.array([framed(number, avro(text, {"id": 5}))], pa.binary()))
    registry.failure = 0
    references = [{"name": "a", "subject": "a", "version": 1}]
    registry.register(SUBJECT, text, references=references)
    with pytest.raises(RegistryError, match="refers to others"):
        found_schema(registry)


def test_a_registry_that_does_not_answer_is_named(registry: SchemaRegistry) -> None:
    text = record({"name": "id", "type": "long"})
    number = registry.register(SUBJECT, text)
    client = {"url": registry.url, "max.retries": 0}
    schema = find_schema("avro", SUBJECT, client)
    gone = ValueSchema(
        format="avro", schema=schema.schema, client={**client, "url": "http://127.0.0.1:1"}
    )
    with pytest.raises(RegistryError, match=r"the schema registry: .*refused"):
        gone.decoder().decode(pa.array([framed(number, b"\x02")], pa.binary()))
    with pytest.raises(RegistryError, match="the schema of orders-value"):
        find_schema("avro", SUBJECT, {**client, "url": "http://127.0.0.1:1"})


# --- JSON

JSON = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "price": {"oneOf": [{"type": "null"}, {"type": "number"}]},
        "state": {"enum": ["new", "old"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "inner": {"$ref": "#/definitions/in"},
    },
    "definitions": {"in": {"type": "object", "properties": {"x": {"type": "boolean"}}}},
}


def test_json_values_are_columns_if_they_match_the_schema(registry: SchemaRegistry) -> None:
    number = registry.register(SUBJECT, json.dumps(JSON), "JSON")
    schema = found_schema(registry, "json-schema")
    full = {"id": 1, "name": "a", "price": 1.5, "state": "old", "tags": ["t"], "inner": {"x": True}}
    texts = [
        json.dumps({**full, "counts": {"n": 2}}),
        '{"id": 2, "unknown": 1}',
        '{"id": "3"}',
        '{"name": "no id"}',
        '{"id": 9223372036854775808}',
        "not JSON",
    ]
    rows, errors = decoded(schema, [framed(number, text.encode()) for text in texts])
    assert rows[0] == {**full, "counts": [("n", 2)]}
    assert rows[1] == {**dict.fromkeys([*full, "counts"]), "id": 2}
    assert rows[2:] == [None] * 4
    assert errors[:2] == [None, None]
    assert "'3' is not of type 'integer'" in errors[2]
    assert all(errors[2:])


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"type": ["integer", "string"]}, "a: a value of several types has no column"),
        ({"type": "object"}, "a: an object without properties has no column"),
        ({"$ref": "#/properties/a"}, "contains itself or is elsewhere"),
        ({}, "a: a value of this type has no column"),
    ],
)
def test_a_json_schema_without_columns_is_refused(
    registry: SchemaRegistry, field: dict[str, Any], message: str
) -> None:
    registry.register(SUBJECT, json.dumps({"type": "object", "properties": {"a": field}}), "JSON")
    with pytest.raises(RegistryError, match=message):
        found_schema(registry, "json-schema")


# --- Protobuf

FIELD = descriptor_pb2.FieldDescriptorProto


def proto_file(*, with_new_field: bool) -> descriptor_pb2.FileDescriptorProto:
    """`message Order` of proto3, as protoc describes it."""
    file = descriptor_pb2.FileDescriptorProto(
        name="order.proto",
        package="shop",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"],
    )
    state = file.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="OLD", number=1)
    order = file.message_type.add(name="Order")
    inner = order.nested_type.add(name="In")
    inner.field.add(name="x", number=1, type=FIELD.TYPE_DOUBLE, label=FIELD.LABEL_OPTIONAL)
    entry = order.nested_type.add(name="CountsEntry", options={"map_entry": True})
    entry.field.add(name="key", number=1, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=FIELD.TYPE_INT32, label=FIELD.LABEL_OPTIONAL)
    kinds = [
        ("id", FIELD.TYPE_INT64, "", False),
        ("size", FIELD.TYPE_UINT64, "", False),
        ("name", FIELD.TYPE_STRING, "", False),
        ("data", FIELD.TYPE_BYTES, "", False),
        ("state", FIELD.TYPE_ENUM, ".shop.State", False),
        ("at", FIELD.TYPE_MESSAGE, ".google.protobuf.Timestamp", False),
        ("note", FIELD.TYPE_MESSAGE, ".google.protobuf.StringValue", False),
        ("inner", FIELD.TYPE_MESSAGE, ".shop.Order.In", False),
        ("tags", FIELD.TYPE_STRING, "", True),
        ("counts", FIELD.TYPE_MESSAGE, ".shop.Order.CountsEntry", True),
    ]
    if with_new_field:
        kinds.append(("more", FIELD.TYPE_STRING, "", False))
    for number, (name, kind, of, many) in enumerate(kinds, 1):
        label = FIELD.LABEL_REPEATED if many else FIELD.LABEL_OPTIONAL
        order.field.add(name=name, number=number, type=kind, type_name=of or None, label=label)
    return file


def proto_class(file: descriptor_pb2.FileDescriptorProto) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, wrappers_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf_values_are_columns_by_field_number(registry: SchemaRegistry) -> None:
    old, new = (proto_file(with_new_field=each) for each in (False, True))
    first = registry.register(SUBJECT, serialized(old.SerializeToString()), "PROTOBUF")
    schema = found_schema(registry, "protobuf")
    second = registry.register(SUBJECT, serialized(new.SerializeToString()), "PROTOBUF")
    order = proto_class(new)(
        id=1, size=2, name="a", data=b"b", state=1, inner={"x": 0.5}, tags=["t"], counts={"n": 1}
    )
    order.at.FromDatetime(AT)
    order.note.value = "n"
    full = order.SerializeToString()
    order.more = "new"
    huge = proto_class(new)(size=1 << 63, state=9).SerializeToString()
    values = [
        framed(first, b"\0" + full),
        framed(second, b"\0" + order.SerializeToString()),
        framed(first, b"\0"),
        framed(first, b"\0" + huge),
        framed(first, b"\0\xff\xff"),
        b"\1",
    ]
    rows, errors = decoded(schema, values)
    assert rows[0] == rows[1] == {
        "id": 1, "size": 2, "name": "a", "data": b"b", "state": "OLD", "at": AT, "note": "n",
        "inner": {"x": 0.5}, "tags": ["t"], "counts": [("n", 1)],
    }  # fmt: skip
    assert rows[2] == {
        "id": 0, "size": 0, "name": "", "data": b"", "state": "NEW", "at": None, "note": None,
        "inner": None, "tags": [], "counts": [],
    }  # fmt: skip
    assert rows[3:] == [None] * 3
    assert errors[:3] == [None] * 3
    assert all(errors[3:])


def test_a_protobuf_value_of_another_message_of_the_file_is_an_error(
    registry: SchemaRegistry,
) -> None:
    file = proto_file(with_new_field=False)
    number = registry.register(SUBJECT, serialized(file.SerializeToString()), "PROTOBUF")
    data = proto_class(file)(id=7).SerializeToString()
    indexes = [b"\0", b"\2\0", b"\2\2", b"\4\0\0"]  # [0] twice, [1], [0, 0]
    values = [framed(number, each + data) for each in indexes]
    rows, errors = decoded(found_schema(registry, "protobuf"), values)
    assert [row and row["id"] for row in rows] == [7, 7, None, None]
    assert errors[:2] == [None, None]
    assert all("another message than the first" in str(error) for error in errors[2:])


def test_a_protobuf_schema_without_columns_is_refused(registry: SchemaRegistry) -> None:
    registry.register(SUBJECT, "syntax = 'proto3';", "PROTOBUF")
    with pytest.raises(RegistryError, match="the registry gives no serialized file"):
        found_schema(registry, "protobuf")
    file = proto_file(with_new_field=False)
    file.message_type[0].field.add(
        name="next", number=20, type=FIELD.TYPE_MESSAGE, type_name=".shop.Order",
        label=FIELD.LABEL_OPTIONAL,
    )  # fmt: skip
    registry.register(SUBJECT, serialized(file.SerializeToString()), "PROTOBUF")
    with pytest.raises(RegistryError, match=r"next: shop\.Order contains itself"):
        found_schema(registry, "protobuf")
