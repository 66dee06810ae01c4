"""`valueFormat`: values of a schema registry as columns of a query and of a stream."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from odradek.pipeline.option_values import OptionError
from odradek.pipeline.source.options import read_options
from odradek.pipeline.source.registry_values import registry_schema
from tests.pipeline.registry.test_registry_values import avro, record
from tests.support.lengths import only_long
from tests.support.log_box import NOW_MS, LogBox, put
from tests.support.schema_registry import SchemaRegistry, framed, schema_registry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDER = record(
    {"name": "id", "type": "long"},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "counts", "type": {"type": "map", "values": "int"}},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
)


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry() as found:
        yield found


def orders(registry: SchemaRegistry, root: Path, *more: bytes | None) -> dict[str, str]:
    """The options of a topic with two orders, and other values after them."""
    number = registry.register("orders-value", ORDER)
    log = LogBox(root).open()
    for order in (1, 2):
        value = {"id": order, "tags": ["a"] * order, "counts": {"n": order}, "at": None}
        put(log, framed(number, avro(ORDER, value)))
    for value in more:
        put(log, value)
    log.close(NOW_MS)
    return {
        "path": str(root),
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "valueFormat": "avro",
        "schema.registry.url": registry.url,
    }


def test_values_are_columns_of_a_query(
    spark: "SparkSession", registry: SchemaRegistry, tmp_path: Path
) -> None:
    options = orders(registry, tmp_path, None, b"bad")
    frame = spark.read.format("odradek").options(**options).load()
    assert frame.schema["value"].dataType.simpleString() == (
        "struct<id:bigint,tags:array<string>,counts:map<string,int>,at:timestamp>"
    )
    with pytest.raises(Exception, match=r"orders-0 offset 3: the value cannot be decoded: .*error"):
        frame.select("value").collect()
    frame = spark.read.format("odradek").options(**options, badValues="null").load()
    rows = frame.orderBy("offset").selectExpr("offset", "value.id", "value.tags", "value.counts")
    assert [tuple(row) for row in rows.collect()] == [
        (0, 1, ["a"], {"n": 1}),
        (1, 2, ["a", "a"], {"n": 2}),
        (2, None, None, None),
        (3, None, None, None),
    ]
    keys = spark.read.format("odradek").options(**options).schema("key binary").load()
    assert keys.count() == 4, "values that nobody asks for are not decoded"


@only_long("a query has them above")
def test_values_are_columns_of_a_stream(
    spark: "SparkSession", registry: SchemaRegistry, tmp_path: Path
) -> None:
    options = orders(registry, tmp_path / "data")
    stream = spark.readStream.format("odradek").options(**options).load()
    query = (
        stream.select("value.*")
        .writeStream.format("memory")
        .queryName("decoded_orders")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(60)
    assert [row.id for row in spark.table("decoded_orders").orderBy("id").collect()] == [1, 2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"valueFormat": "avro"}, r"requires the option 'schema\.registry\.url'"),
        ({"valueFormat": "thrift"}, "must be one of binary, avro, protobuf, json-schema"),
        ({"schema.registry.url": "http://x"}, r"schema\.registry\.url has no effect without"),
        ({"badValues": "null"}, "badValues has no effect without valueFormat"),
        (
            {"valueFormat": "avro", "schema.registry.url": "http://x", "view": "batches"},
            "view=batches has no values",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        read_options({"path": "/logs", "subscribe": "a", **given}, streaming=None)


def test_the_subject_is_that_of_the_topic_unless_it_is_named(registry: SchemaRegistry) -> None:
    registry.register("all-orders", ORDER)
    given: dict[str, Any] = {
        "path": "/logs",
        "subscribe": "a, b",
        "valueFormat": "avro",
        "schema.registry.url": registry.url,
    }
    with pytest.raises(OptionError, match="several topics may be read: set valueSubject"):
        registry_schema(read_options(given, streaming=None))
    with pytest.raises(OptionError, match="valueFormat=avro: the schema of a-value: "):
        registry_schema(read_options({**given, "subscribe": "a"}, streaming=None))
    found = registry_schema(read_options({**given, "valueSubject": "all-orders"}, streaming=None))
    assert json.loads(str(found.schema.schema_str)) == json.loads(ORDER)
