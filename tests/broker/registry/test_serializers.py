"""confluent-kafka's serializers and deserializers in the three formats, and its client."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from odradek.broker.testing.broker import Broker

pytestmark = pytest.mark.slow

CONTEXT = SerializationContext("orders", MessageField.VALUE)
AVRO = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"},'
    '{"name":"lines","type":{"type":"array","items":"string"}}]}'
)
JSON = (
    '{"$schema":"http://json-schema.org/draft-07/schema#","title":"Order","type":"object",'
    '"properties":{"id":{"type":"integer"}},"required":["id"]}'
)


Connect = Callable[[], SchemaRegistryClient]


@pytest.fixture
def connect(broker: Broker) -> Iterator[Connect]:
    """Makes clients, which share nothing."""
    with ExitStack() as clients:
        settings = {"url": broker.registry_url}
        yield lambda: clients.enter_context(SchemaRegistryClient(settings))


def test_avro(connect: Connect) -> None:
    order = {"id": 3, "lines": ["coffee"]}
    data = AvroSerializer(connect(), AVRO)(order, CONTEXT)
    assert AvroDeserializer(connect())(data, CONTEXT) == order


def test_json_schema(connect: Connect) -> None:
    data = JSONSerializer(JSON, connect())({"id": 3}, CONTEXT)
    found = JSONDeserializer(None, schema_registry_client=connect())(data, CONTEXT)
    assert found == {"id": 3}


def order_class() -> Any:
    """A message with a map, a nested message, a choice and a type of another file."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    order = file.message_type.add(name="Order")
    line = order.nested_type.add(name="Line")
    line.field.add(name="item", number=1, type=9, label=1)
    order.field.add(name="lines", number=1, type=11, label=3, type_name=".shop.Order.Line")
    order.oneof_decl.add(name="pay")
    order.field.add(name="card", number=2, type=9, label=1, oneof_index=0)
    order.field.add(name="at", number=3, type=11, label=1, type_name=".google.protobuf.Timestamp")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf(connect: Connect) -> None:
    order_type = order_class()
    order = order_type(card="1234", lines=[{"item": "coffee"}], at={"seconds": 5})
    settings = {"use.deprecated.format": False}
    data = ProtobufSerializer(order_type, connect(), settings)(order, CONTEXT)
    # A client of its own: what it asks for is `format=serialized`.
    assert ProtobufDeserializer(order_type, settings, connect())(data, CONTEXT) == order
    text = connect().get_latest_version("orders-value").schema.schema_str
    assert "message Order {" in text


def test_the_client(connect: Connect) -> None:
    found = connect()
    schema = Schema(AVRO, "AVRO")
    assert found.register_schema("orders-value", schema) == 1
    assert found.get_subjects() == ["orders-value"]
    assert found.get_versions("orders-value") == [1]
    assert found.get_schema(1).schema_str == found.get_version("orders-value", 1).schema.schema_str
    assert found.lookup_schema("orders-value", schema).version == 1
    assert found.test_compatibility("orders-value", Schema('"int"', "AVRO")) is False
    found.set_compatibility("orders-value", "FULL")
    assert found.get_compatibility("orders-value") == "FULL"
    assert found.delete_version("orders-value", 1) == 1
    assert found.delete_subject("orders-value", permanent=True) == [1]
