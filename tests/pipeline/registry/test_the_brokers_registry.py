"""The registry that the broker serves, as the pipeline reads it."""

import json
from collections.abc import Iterator

import pytest

from odradek.broker.testing.broker import Broker
from odradek.pipeline.registry.formats import RegistryFormat
from odradek.pipeline.registry.values import find_schema
from tests.pipeline.registry.test_registry_values import decoded
from tests.support.registry_client import RegistryClient
from tests.support.schema_registry import avro, framed, record

# confluent-kafka's client keeps its connection, and nobody closes the client of a decoder.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

SUBJECT = "orders-value"
AVRO = record({"name": "id", "type": "long"})
JSON = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}})
PROTOBUF = 'syntax = "proto3"; message Order { int64 id = 1; }'


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("registry"), registry=True) as broker:
        yield broker


@pytest.mark.parametrize(
    ("format_", "kind", "schema", "data"),
    [
        ("avro", "AVRO", AVRO, avro(AVRO, {"id": 7})),
        ("json-schema", "JSON", JSON, b'{"id": 7}'),
        ("protobuf", "PROTOBUF", PROTOBUF, b"\x00\x08\x07"),
    ],
    ids=["avro", "json-schema", "protobuf"],
)
def test_values_of_each_format_are_columns(
    broker: Broker, format_: RegistryFormat, kind: str, schema: str, data: bytes
) -> None:
    broker.reset()
    number = RegistryClient(broker.registry_url).register(SUBJECT, schema, schemaType=kind)
    found = find_schema(format_, SUBJECT, {"url": broker.registry_url, "max.retries": 0})
    assert decoded(found, [framed(number, data)]) == ([{"id": 7}], [None])
