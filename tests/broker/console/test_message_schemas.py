"""Values with a schema in the console, as confluent-kafka's serializers write them."""

import base64
import datetime
import io
import json
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from confluent_kafka.schema_registry import (
    Schema,
    SchemaRegistryClient,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.type_pb2 import Type

from tests.support.broker_process import against_apache_kafka, free_ports, running
from tests.support.console_client import CONSOLE, ConsoleBroker, ConsoleClient, console_broker
from tests.support.metrics import http_port
from tests.support.secured_broker import PASSWORD, SecuredBroker

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


def registered(
    client: SchemaRegistryClient, topic: str, schema: object, kind: str = "AVRO"
) -> bytes:
    """Register a schema; return what a value of it begins with."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    number = client.register_schema(f"{topic}-value", Schema(text, kind))
    return b"\0" + number.to_bytes(4, "big")


NODE = {"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "R"]}]}
ENDLESS = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "R"}]}
NOTHING = {"type": "record", "name": "E", "fields": []}
LONG_SYMBOL = {"type": "enum", "name": "S", "symbols": ["a" * 3000]}
FORTY_MILLION = b"\x80\xd0\xac\xf3\x0e"


@pytest.mark.parametrize(
    ("schema", "payload", "reason"),
    [
        (NODE, b"\2" * 60_000 + b"\0", "nested more than 64 deep"),
        (ENDLESS, b"\2", "nested more than 64 deep"),
        ({"type": "array", "items": "null"}, FORTY_MILLION + b"\0", "more than 10000 items"),
        ({"type": "array", "items": NOTHING}, FORTY_MILLION + b"\0", "more than 10000 items"),
        ({"type": "map", "values": "null"}, FORTY_MILLION + b"\0" * 20_000, "10000 items"),
        ({"type": "array", "items": LONG_SYMBOL}, b"\xa0\x1f" + b"\0" * 2001, "1048576 letters"),
        ("bytes", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1", "do not fit"),
        ("string", b"\1", "do not fit"),
        ("long", b"\xff" * 11, "more than 64 bits"),
        (["null", "int"], b"\x04", "there is no branch 2"),
    ],
)
def test_hostile_values_of_avro_are_refused_with_a_reason(
    broker: ConsoleBroker,
    client: SchemaRegistryClient,
    schema: object,
    payload: bytes,
    reason: str,
    request: pytest.FixtureRequest,
) -> None:
    """fastavro's reader ended the process, or took seconds and all memory."""
    topic = f"hostile-{request.node.callspec.indices['schema']}"
    value = registered(client, topic, json.dumps(schema)) + payload
    found = shown(broker, topic, value)
    assert reason in found["reason"]
    assert found["format"] in ("hex", "text")
    assert broker.console.get(f"/topics/{topic}/messages", jsonPath="$.a")["records"] == []


EVERYTHING = {
    "type": "record",
    "name": "All",
    "namespace": "a.b",
    "fields": [
        {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 2}},
        {"name": "again", "type": "F"},
        {"name": "enum", "type": {"type": "enum", "name": "c.E", "symbols": ["X", "Y"]}},
        {"name": "enums", "type": {"type": "array", "items": "c.E"}},
        {"name": "map", "type": {"type": "map", "values": ["null", "double", "All"]}},
        {"name": "numbers", "type": {"type": "array", "items": ["float", "long", "boolean"]}},
        {"name": "bytes", "type": "bytes"},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        },
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
    ],
}


def test_every_type_of_avro_is_read_as_fastavro_does(
    broker: ConsoleBroker, client: SchemaRegistryClient
) -> None:
    value = {
        "fixed": b"ab",
        "again": b"cd",
        "enum": "Y",
        "enums": ["X", "Y", "X"],
        "map": {"a": None, "ž": 0.5},
        "numbers": [0.5, -(2**63), True],
        "bytes": b"\xff\0",
        "day": datetime.date(2026, 11, 29),
        "at": datetime.datetime(2026, 11, 29, 21, 0, tzinfo=datetime.UTC),
        "price": Decimal("-1234.56"),
        "id": uuid.UUID(int=7),
    }
    value["map"] = {"a": None, "ž": 0.5, "inner": {**value, "map": {}}}
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(EVERYTHING), value)
    read = fastavro.schemaless_reader(io.BytesIO(written.getvalue()), EVERYTHING, None)
    found = shown(
        broker, "everything", registered(client, "everything", EVERYTHING) + written.getvalue()
    )
    assert found["reason"] is None
    assert found["text"] == msgspec.json.encode(read).decode()


def test_long_schemas_are_used(broker: ConsoleBroker, client: SchemaRegistryClient) -> None:
    fields = [{"name": f"field{number}", "type": "int"} for number in range(200)]
    avro = {"type": "record", "name": "Long", "fields": fields}
    value = shown(broker, "long-avro", registered(client, "long-avro", avro) + b"\2" * 200)
    assert (value["format"], value["reason"]) == ("avro", None)
    texts = "".join(f"string f{number} = {number};" for number in range(1, 400))
    protobuf = f'syntax = "proto3"; message M {{{texts}}}'
    begin = registered(client, "long-protobuf", protobuf, "PROTOBUF")
    value = shown(broker, "long-protobuf", begin + b"\0\n\1a")
    assert (value["format"], value["text"]) == ("protobuf", '{"f1": "a"}')
    page = broker.console.get("/topics/long-protobuf/messages", jsonPath="$.f1=a")
    assert len(page["records"]) == 1


LONG_NAME = f'syntax = "proto3"; message M {{string {"a" * 200} = 1;}}'


@pytest.mark.parametrize(
    ("topic", "schema", "kind"),
    [
        ("same-tags", 'syntax = "proto3"; message M {string a = 1; string b = 1;}', "PROTOBUF"),
        ("same-names", 'syntax = "proto3"; message M {string a = 1; string a = 2;}', "PROTOBUF"),
        ("long-name", LONG_NAME, "PROTOBUF"),
        ("precision", '{"type":"bytes","logicalType":"decimal","precision":-1}', "AVRO"),
    ],
)
def test_a_schema_that_cannot_be_used_is_a_reason(
    broker: ConsoleBroker, client: SchemaRegistryClient, topic: str, schema: str, kind: str
) -> None:
    payload = b"\2\1" if kind == "AVRO" else b"\0\n\1a"
    value = shown(broker, topic, registered(client, topic, schema, kind) + payload)
    assert value["format"] == "hex"
    assert "the schema cannot be used: " in value["reason"] or "does not fit: " in value["reason"]
    assert broker.console.get(f"/topics/{topic}/messages", jsonPath="$.a")["records"] == []


def test_a_large_protobuf_value(broker: ConsoleBroker, client: SchemaRegistryClient) -> None:
    schema = 'syntax = "proto3"; message M {repeated M m = 1;}'
    begin = registered(client, "large-protobuf", schema, "PROTOBUF")
    value = shown(broker, "large-protobuf", begin + b"\0" + b"\n\0" * 20_000)
    assert (value["format"], value["isCut"]) == ("protobuf", True)


def test_a_path_leads_into_long_values(broker: ConsoleBroker, client: SchemaRegistryClient) -> None:
    """Each alone: neither its length nor that of another keeps a record from being found."""
    serialize = AvroSerializer(client, json.dumps(AVRO))
    place = SerializationContext("long-values", MessageField.VALUE)
    short, long = (serialize({"id": 7, "who": who}, place) for who in ("short", "x" * 70_000))
    texts = [json.dumps({"id": 7, "who": "x" * 70_000}).encode(), b'{"id": 8}']
    values = [short, long, *texts]
    client_of_topic = Producer({"bootstrap.servers": broker.process.bootstrap, "linger.ms": 1000})
    for value in values:
        client_of_topic.produce("long-values", value)
    assert client_of_topic.flush(30) == 0
    page = broker.console.get("/topics/long-values/messages", jsonPath="$.id=7")
    assert [record["offset"] for record in page["records"]] == [2, 1, 0]
    assert page["unreadable"] == []


def test_a_large_batch_says_into_which_records_no_path_leads(
    broker: ConsoleBroker, client: SchemaRegistryClient
) -> None:
    serialize = AvroSerializer(client, json.dumps(AVRO))
    place = SerializationContext("large-batch", MessageField.VALUE)
    value = serialize({"id": 7, "who": "x" * 100_000}, place)
    sender = Producer(
        {
            "bootstrap.servers": broker.process.bootstrap,
            "linger.ms": 1000,
            "batch.size": 10_000_000,
            "message.max.bytes": 10_000_000,
            "compression.type": "gzip",
        }
    )
    for _ in range(50):
        sender.produce("large-batch", value)
    assert sender.flush(30) == 0
    page = broker.console.get("/topics/large-batch/messages", jsonPath="$.id=7")
    found = {record["offset"] for record in page["records"]}  # the first may have been sent alone
    (left_out,) = page["unreadable"]
    assert found | set(range(left_out["firstOffset"], left_out["lastOffset"] + 1)) == set(range(50))
    assert "in so large a batch" in left_out["reason"]


def test_a_protobuf_message_is_named_from_the_first_on(
    broker: ConsoleBroker, client: SchemaRegistryClient
) -> None:
    schema = 'syntax = "proto3"; message A {string a = 1;} message B {string b = 1;}'
    begin = registered(client, "negative", schema, "PROTOBUF")
    value = shown(broker, "negative", begin + b"\2\1\n\1a")  # the message -1
    assert value["format"] == "hex"
    assert "[-1]" in value["reason"]


def test_the_schemas_of_a_topic_that_is_created_again(tmp_path: Path) -> None:
    """A schema that was used before is not taken for another with its id."""
    (port,) = free_ports(1)
    settings = {"odradek.registry.listener": f"127.0.0.1:{port}"}
    with console_broker(tmp_path, settings) as own:
        url = {"url": f"http://127.0.0.1:{port}"}
        admin = AdminClient({"bootstrap.servers": own.process.bootstrap})
        seen = []
        for name in ("old", "new"):
            record = {"type": "record", "name": "R", "fields": [{"name": name, "type": "int"}]}
            with SchemaRegistryClient(url) as registry:
                begin = registered(registry, "again", record)
            seen.append((begin, shown(own, "again", begin + b"\2")["text"]))
            for done in admin.delete_topics(["_schemas"]).values():
                done.result(30)
    begin = b"\0\0\0\0\1"
    assert seen == [(begin, '{"old":1}'), (begin, '{"new":1}')]


def test_schemas_are_shown_only_to_those_who_may_read_their_topic(tmp_path: Path) -> None:
    """By values of one's own, the ids and the contents of all schemas could be learned."""
    secured = SecuredBroker("odradek", tmp_path, tls=False)
    secured.process.settings |= CONSOLE
    with running(secured.process):
        admin = AdminClient({"bootstrap.servers": secured.plain_servers})
        for done in admin.create_topics([NewTopic(n, 1, 1) for n in ("seen", "_schemas")]).values():
            done.result()
        right = AclOperation.READ, AclPermissionType.ALLOW
        where = ResourceType.TOPIC, "seen", ResourcePatternType.LITERAL
        for done in admin.create_acls([AclBinding(*where, "User:alice", "*", *right)]).values():
            done.result()
        port = http_port(secured.process)
        chief = ConsoleClient(port, "admin", PASSWORD)
        key = {"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1}
        value = {"subject": "s", "version": 1, "id": 1, "schema": '"int"', "deleted": False}
        chief.post(
            "/topics/_schemas/messages", {"key": json.dumps(key), "value": json.dumps(value)}
        )
        for data in (b"\0\0\0\0\1\2", b"\0\0\0\0\2\2"):
            chief.post("/topics/seen/messages", {"valueBase64": base64.b64encode(data).decode()})
        known = chief.get("/topics/seen/partitions/0/messages/0")["record"]["value"]
        assert (known["format"], known["text"], known["schemaId"]) == ("avro", "1", 1)
        alice = ConsoleClient(port, "alice", "alice-secret")
        records = alice.get("/topics/seen/messages", position="oldest")["records"]
        assert [each["value"]["text"] for each in records] == ["000000000102", "000000000202"]
        assert {each["value"]["schemaId"] for each in records} == {None}
        assert {each["value"]["reason"] for each in records} == {
            "you may not read the topic _schemas"
        }
        assert alice.get("/topics/seen/messages", jsonPath="$")["records"] == []
