"""Values with a schema of the broker's registry, read by Spark's own `from_avro`.

Spark knows no registry: a job asks it for the schema, and cuts the five bytes with its id off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from odradek.broker.testing.broker import Broker
from tests.support.broker_process import against_apache_kafka
from tests.support.kafka_jars import spark_avro_jars, spark_connector_jars, why_no_jars
from tests.support.quick_spark import quick_java_options
from tests.support.schema_registry import record
from tests.support.spark_process import SparkProcess, why_no_connector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(against_apache_kafka(), reason="odradek's own registry"),
]

TOPIC = "orders"
SCHEMA = record({"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]})
ORDERS = [{"id": 7, "note": "two coffees"}, {"id": 8, "note": None}]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("registry"), registry=True) as broker:
        yield broker


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkProcess]:
    reason = why_no_connector() or (why_no_jars() if spark_avro_jars() is None else None)
    if reason:
        pytest.skip(reason)
    jars = [*(spark_connector_jars() or ()), *(spark_avro_jars() or ())]
    conf = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": quick_java_options()}
    with SparkProcess(tmp_path, {**conf, "spark.jars": ",".join(map(str, jars))}) as process:
        yield process


def test_from_avro_reads_what_a_serializer_has_written(broker: Broker, spark: SparkProcess) -> None:
    broker.create_topic(TOPIC)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    with SchemaRegistryClient({"url": broker.registry_url}) as registry:
        serialize = AvroSerializer(registry, SCHEMA)
        for order in ORDERS:
            context = SerializationContext(TOPIC, MessageField.VALUE)
            producer.produce(TOPIC, serialize(order, context))
        assert producer.flush(60) == 0
        latest = registry.get_latest_version(f"{TOPIC}-value").schema.schema_str
    assert spark.do(read, broker.bootstrap_servers, latest) == ORDERS


def read(session: SparkSession, servers: str, schema: str) -> list[dict[str, Any]]:
    """The values of the topic; runs in Spark's process."""
    from pyspark.sql.avro.functions import from_avro
    from pyspark.sql.functions import expr

    records = (
        session.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", TOPIC)
        .load()
    )
    values = records.orderBy("offset").select(
        from_avro(expr("substring(value, 6)"), schema).alias("order")
    )
    return [row.order.asDict() for row in values.collect()]
