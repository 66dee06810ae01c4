from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from checked_orders import start
from odradek.broker.testing import Broker


def send(broker: Broker, values: Iterable[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in values:
        producer.produce("orders", value)
    producer.flush(10)


def test_each_record_becomes_a_large_order_or_a_dead_letter_or_is_dropped(
    odradek_broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    for name in ("orders.large", "orders.bad"):
        odradek_broker.create_topic(name)
    kafka = {"kafka.bootstrap.servers": odradek_broker.bootstrap_servers}
    for new in (['{"id": 1, "customer": "anne", "amount": 1200}', '{"id": 2, "amount": 5}'], ["{"]):
        send(odradek_broker, new)
        query = start(spark, kafka, str(tmp_path), availableNow=True)
        assert query.awaitTermination(60)
        odradek_broker.kill_and_restart()
    [large] = odradek_broker.records("orders.large")
    assert (large.key, large.value) == (b"anne", b'{"id":1,"customer":"anne","amount":1200.00}')
    [letter] = odradek_broker.records("orders.bad")
    assert letter.value == b"{"
    reason = dict(letter.headers)["odradek.error.message"]
    assert reason == b"value: not JSON that matches the schema"
