from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Producer

from odradek.broker.testing import Broker
from shop import LIMIT_S, Orders, Shipping


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[Broker]:
    with Broker(nodes=3) as cluster:
        yield cluster


@pytest.fixture
def cluster(three_nodes: Broker) -> Broker:
    three_nodes.reset()
    three_nodes.create_topic("orders", partitions=1)
    three_nodes.create_topic("shipments", partitions=1)
    return three_nodes


def values(cluster: Broker, topic: str) -> list[int]:
    return [int(record.value or b"-1") for record in cluster.records(topic)]


def test_the_leader_is_killed_while_orders_are_written(cluster: Broker) -> None:
    orders = Orders(cluster.bootstrap_servers)
    orders.write(range(50))
    cluster.node(cluster.partition("orders", 0).leader).kill()
    orders.write(range(50, 100))
    assert values(cluster, "orders") == list(range(100))


def test_each_node_is_restarted_while_orders_are_written(cluster: Broker) -> None:
    orders = Orders(cluster.bootstrap_servers)
    for node in cluster.nodes:
        node.stop()
        orders.write([node.id])
        node.start()
    assert values(cluster, "orders") == [node.id for node in cluster.nodes]


def test_the_coordinator_of_the_group_is_killed(cluster: Broker) -> None:
    Orders(cluster.bootstrap_servers).write(range(20))
    shipping = Shipping(cluster.bootstrap_servers)
    shipping.ship(10)
    cluster.node(cluster.coordinator("shipping")).kill()
    shipping.ship(10)
    shipping.close()
    assert values(cluster, "shipments") == list(range(20))
    assert cluster.committed("shipping", "orders") == {0: 20}


def test_the_coordinator_of_the_transaction_is_killed(cluster: Broker) -> None:
    Orders(cluster.bootstrap_servers).write(range(20))
    shipping = Shipping(cluster.bootstrap_servers)
    cluster.node(cluster.transaction_coordinator("shipping")).kill()
    shipping.ship(20)
    shipping.close()
    assert values(cluster, "shipments") == list(range(20))


def test_a_node_does_not_answer_any_more(cluster: Broker) -> None:
    orders = Orders(cluster.bootstrap_servers)
    orders.write(range(10))
    cluster.node(cluster.partition("orders", 0).leader).pause()
    cluster.notice_now()  # the other nodes would notice it after nine seconds
    orders.write(range(10, 20))
    assert values(cluster, "orders") == list(range(20))


def test_a_write_that_too_few_nodes_would_have_is_refused(cluster: Broker) -> None:
    cluster.create_topic("payments", partitions=1, configs={"min.insync.replicas": "2"})
    cluster.shrink_isr("payments", 0)
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "retries": 0})
    producer.produce("payments", b"10", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(LIMIT_S) == 0
    assert [error and error.code() for error in errors] == [KafkaError.NOT_ENOUGH_REPLICAS]
    assert cluster.records("payments") == []
