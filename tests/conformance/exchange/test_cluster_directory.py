"""The directory of a played cluster is that of one node: Apache Kafka serves it."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from odradek.broker.testing import Broker
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.support.broker_process import BrokerProcess
from tests.support.committed import committed_values
from tests.support.lengths import only_long

pytestmark = [pytest.mark.slow, pytest.mark.java]
PARTITIONS = 3
NODE_ID = "1"  # of the first node, and so of the directory


def transaction(producer: Producer, values: range) -> None:
    producer.begin_transaction()
    for value in values:
        producer.produce("orders", str(value), partition=value % PARTITIONS)
    producer.commit_transaction(60)


def as_node_1(kafka: BrokerProcess) -> BrokerProcess:
    for key in ("controller.quorum.voters", "controller.quorum.bootstrap.servers"):
        if key in kafka.settings:
            kafka.settings[key] = kafka.settings[key].replace("0@", f"{NODE_ID}@")
    kafka.settings["node.id"] = NODE_ID
    return kafka


@only_long("directories of one node are exchanged in test_exchange.py")
def test_kafka_finds_what_clients_of_the_cluster_have_written(tmp_path: Path) -> None:
    with Broker(tmp_path, nodes=3) as cluster:
        cluster.create_topic("orders", partitions=PARTITIONS)
        client = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        producer = Producer({**client, "transactional.id": "orders"})
        producer.init_transactions(60)
        transaction(producer, range(30))
        cluster.node(2).kill()
        cluster.move_leader("orders", 0, to=3)
        transaction(producer, range(30, 60))
        cluster.node(2).start()
        cluster.elect()
        consumer = Consumer({**client, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        read = 0
        while read < 60:
            read += len(consumer.consume(60 - read, 10))
        consumer.commit(asynchronous=False)
        consumer.close()
    kafka = as_node_1(SharedDirectory(tmp_path).kafka())
    try:
        kafka.start()
        found = committed_values(kafka.bootstrap, "orders", PARTITIONS)
        assert sorted(map(int, found)) == list(range(60))
        client["bootstrap.servers"] = kafka.bootstrap
        producer = Producer({**client, "transactional.id": "orders"})
        producer.init_transactions(60)
        transaction(producer, range(60, 90))
        consumer = Consumer({**client, "group.id": "g", "auto.offset.reset": "error"})
        consumer.subscribe(["orders"])
        seen: list[int] = []
        while len(seen) < 30:
            seen += [int(each.value() or b"") for each in consumer.consume(30, 10)]
        assert sorted(seen) == list(range(60, 90))
        consumer.close()
        assert kafka.crashes_in_log() == []
    finally:
        kafka.stop()
