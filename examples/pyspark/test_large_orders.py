from pathlib import Path

from confluent_kafka import Producer
from pyspark.sql import SparkSession

from large_orders import copy_large_orders
from odradek.broker.testing import Broker


def order(broker: Broker, *sizes: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for size in sizes:
        producer.produce("orders", str(size))
    producer.flush(10)


def large_orders(broker: Broker) -> list[bytes | None]:
    return [record.value for record in broker.records("large-orders")]


def test_each_large_order_is_copied_once(
    odradek_broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    odradek_broker.create_topic("large-orders")
    order(odradek_broker, 5, 100, 300)
    copy_large_orders(spark, odradek_broker.bootstrap_servers, str(tmp_path))
    assert large_orders(odradek_broker) == [b"100", b"300"]
    odradek_broker.kill_and_restart()
    order(odradek_broker, 200, 1)
    copy_large_orders(spark, odradek_broker.bootstrap_servers, str(tmp_path))
    assert large_orders(odradek_broker) == [b"100", b"300", b"200"]
