"""Values with a schema in the console, as confluent-kafka's serializers write them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.type_pb2 import Type

from tests.support.broker_process import against_apache_kafka, free_ports
from tests.support.console_client import ConsoleBroker, console_broker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(against_apache_kafka(), reason="odradek's own console"),
]

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": ["null", "string"]}],
}
JSON_SCHEMA = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.fixture(scope="module")
def registry_port() -> int:
    (port,) = free_ports(1)
    return port


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, registry_port: int) -> Iterator[ConsoleBroker]:
    settings = {"odradek.registry.listener": f"127.0.0.1:{registry_port}"}
    with console_broker(tmp_path_factory.mktemp("schemas"), settings) as found:
        yield found


@pytest.fixture
def client(registry_port: int) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": f"http://127.0.0.1:{registry_port}"}) as found:
        yield found


def shown(
    broker: ConsoleBroker, topic: str, value: bytes, headers: Any = (), **query: object
) -> Any:
    """Send a value; return how it is shown."""
    producer = Producer({"bootstrap.servers": broker.process.bootstrap})
    producer.produce(topic, value, headers=list(headers))
    assert producer.flush(30) == 0
    page = broker.console.get(f"/topics/{topic}/messages", **query)
    return page["records"][0]["value"]


def test_avro(broker: ConsoleBroker, client: SchemaRegistryClient) -> None:
    serialize = AvroSerializer(client, json.dumps(AVRO))
    place = SerializationContext("avro", MessageField.VALUE)
    data = serialize({"id": 7, "who": "žluť"}, place)
    value = shown(broker, "avro", data)
    assert json.loads(value["text"]) == {"id": 7, "who": "žluť"}
    assert (value["format"], value["reason"]) == ("avro", None)
    assert value["schemaId"] == int.from_bytes(data[1:5], "big")
    shown(broker, "avro", serialize({"id": 8, "who": None}, place))
    page = broker.console.get("/topics/avro/messages", jsonPath="$.who=žluť")
    assert [record["offset"] for record in page["records"]] == [0]
    assert shown(broker, "avro", data, format="hex")["text"] == data.hex()
    broken = shown(broker, "avro", data + b"more")
    assert (broken["format"], broken["text"]) == ("hex", (data + b"more").hex())
    assert "4 bytes follow" in broken["reason"]
    unknown = shown(broker, "avro", b"\0\0\1\0\0rest")
    assert unknown["reason"] == "no schema in _schemas has the id 65536"


def test_protobuf_with_nested_messages_and_imports(
    broker: ConsoleBroker, client: SchemaRegistryClient
) -> None:
    place = SerializationContext("protobuf", MessageField.VALUE)
    settings = {"use.deprecated.format": False}
    at = Timestamp(seconds=1_700_000_000)
    value = shown(broker, "protobuf", ProtobufSerializer(Timestamp, client, settings)(at, place))
    assert value["format"] == "protobuf"
    assert value["text"] in ('"2023-11-14T22:13:20Z"', '{"seconds": "1700000000"}')
    place = SerializationContext("protobuf-type", MessageField.VALUE)
    kind = Type(name="odradek", oneofs=["a"])
    kind.fields.add(name="f", number=3)
    value = shown(broker, "protobuf-type", ProtobufSerializer(Type, client, settings)(kind, place))
    assert value["reason"] is None
    assert json.loads(value["text"]) == {
        "name": "odradek",
        "fields": [{"number": 3, "name": "f"}],
        "oneofs": ["a"],
    }


def test_json_schema(broker: ConsoleBroker, client: SchemaRegistryClient) -> None:
    serialize = JSONSerializer(json.dumps(JSON_SCHEMA), client)
    data = serialize({"id": 7}, SerializationContext("jsons", MessageField.VALUE))
    value = shown(broker, "jsons", data)
    assert (value["format"], json.loads(value["text"])) == ("jsonschema", {"id": 7})


def test_a_schema_named_by_a_header(broker: ConsoleBroker, client: SchemaRegistryClient) -> None:
    settings = {"schema.id.serializer": header_schema_id_serializer}
    serialize = AvroSerializer(client, json.dumps(AVRO), conf=settings)
    headers: list[tuple[str, bytes]] = []
    data = serialize(
        {"id": 9, "who": None}, SerializationContext("guids", MessageField.VALUE, headers)
    )
    assert data[0] != 0
    value = shown(broker, "guids", data, headers)
    assert (value["format"], json.loads(value["text"])) == ("avro", {"id": 9, "who": None})


def test_the_schemas_as_their_records(broker: ConsoleBroker, client: SchemaRegistryClient) -> None:
    AvroSerializer(client, json.dumps(AVRO))(
        {"id": 1, "who": None}, SerializationContext("s", "value")
    )
    page = broker.console.get("/topics/_schemas/messages", jsonPath="$.subject=s-value")
    assert page["records"][0]["value"]["format"] == "json"
