"""Transactions over partitions of several workers."""

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.broker_with_workers import (
    PARTITIONS,
    BrokerWithWorkers,
    new_topic,
    values_in,
)
from tests.support.lengths import by_length, only_long

pytestmark = pytest.mark.slow


# Also with logs that are synced at each batch, in long runs.
@pytest.fixture(params=by_length([""], ["", "1"]))
def broker(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[BrokerWithWorkers]:
    synced = {"log.flush.interval.messages": request.param} if request.param else {}
    made = BrokerWithWorkers(tmp_path / "broker", overrides=synced).start()
    for name in ("orders", "paid"):
        new_topic(AdminClient({"bootstrap.servers": made.bootstrap}), name)
    yield made
    assert made.terminate() == 0
    assert made.crashes_in_log() == []


def transactional(broker: BrokerWithWorkers, transactional_id: str, **settings: int) -> Producer:
    names = {"bootstrap.servers": broker.bootstrap, "transactional.id": transactional_id}
    producer = Producer(names | settings)
    producer.init_transactions(30)
    return producer


def write(producer: Producer, topic: str, value: str) -> None:
    """One record in each partition, so in the logs of both workers."""
    for index in range(PARTITIONS):
        producer.produce(topic, value, partition=index)


def test_committed_records_are_seen_and_aborted_ones_are_not(broker: BrokerWithWorkers) -> None:
    producer = transactional(broker, "one")
    for number in range(10):
        producer.begin_transaction()
        write(producer, "orders", f"value-{number}")
        if number % 2:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    wanted = sorted([f"value-{number}" for number in range(0, 10, 2)] * PARTITIONS)
    assert values_in(broker.bootstrap, "orders", len(wanted)) == wanted


def test_offsets_and_records_are_committed_together(broker: BrokerWithWorkers) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "copiers"})
    consumer.subscribe(["orders"])
    consumer.poll(1)
    producer = transactional(broker, "copier")
    producer.begin_transaction()
    write(producer, "paid", "paid")
    offsets = [TopicPartition("orders", 0, 7)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
    producer.commit_transaction(30)
    assert values_in(broker.bootstrap, "paid", PARTITIONS) == ["paid"] * PARTITIONS
    [committed] = consumer.committed([TopicPartition("orders", 0)], 30)
    assert committed.offset == 7
    consumer.close()


@only_long("batches are checked in test_verification.py")
def test_a_batch_that_is_checked_in_another_process_is_written(broker: BrokerWithWorkers) -> None:
    """It waits twice, for the coordinator's answer and for the check of a compacted topic."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic = NewTopic("tables", PARTITIONS, config={"cleanup.policy": "compact"})
    admin.create_topics([topic])["tables"].result(30)
    producer = transactional(broker, "one", **{"linger.ms": 200, "transaction.timeout.ms": 8_000})
    producer.begin_transaction()
    for number in range(5_000):
        producer.produce("tables", b"x" * 50, key=b"%d" % number, partition=0)
    producer.commit_transaction(30)
    assert len(values_in(broker.bootstrap, "tables", 5_000)) == 5_000


def test_a_transaction_survives_the_end_of_a_worker(broker: BrokerWithWorkers) -> None:
    producer = transactional(broker, "one")
    producer.begin_transaction()
    write(producer, "orders", "before")
    assert producer.flush(30) == 0
    os.kill(broker.worker_pid(2), signal.SIGKILL)
    producer.commit_transaction(60)
    producer.begin_transaction()
    write(producer, "orders", "after")
    producer.commit_transaction(60)
    wanted = sorted(["before", "after"] * PARTITIONS)
    assert values_in(broker.bootstrap, "orders", len(wanted)) == wanted


def test_a_commit_is_completed_after_the_end_of_the_broker(broker: BrokerWithWorkers) -> None:
    producer = transactional(broker, "one")
    for number in range(3):
        producer.begin_transaction()
        write(producer, "orders", f"value-{number}")
        producer.commit_transaction(60)
        broker.kill()  # the markers may not be written yet
        broker.wait_for_workers()
        broker.start()
    wanted = sorted([f"value-{number}" for number in range(3)] * PARTITIONS)
    assert values_in(broker.bootstrap, "orders", len(wanted)) == wanted


def test_a_fenced_producer_writes_to_no_worker(broker: BrokerWithWorkers) -> None:
    name = str(uuid.uuid4())
    first = transactional(broker, name)
    first.begin_transaction()
    write(first, "orders", "first")
    assert first.flush(30) == 0
    second = transactional(broker, name)
    with pytest.raises(KafkaException):
        first.commit_transaction(30)
    second.begin_transaction()
    write(second, "orders", "second")
    second.commit_transaction(30)
    assert values_in(broker.bootstrap, "orders", PARTITIONS) == ["second"] * PARTITIONS
