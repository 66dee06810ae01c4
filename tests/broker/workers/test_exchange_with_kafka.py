"""Apache Kafka opens a directory after workers, and odradek opens it again, with workers or not."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient

from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.conformance.exchange.seen import log_of
from tests.conformance.exchange.shared_directory import SharedDirectory
from tests.conformance.test_exchange import same
from tests.support.broker_process import BrokerProcess
from tests.support.broker_with_workers import PARTITIONS, BrokerWithWorkers, new_topic, produce
from tests.support.lengths import only_long
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    only_long("one process and workers take turns in test_ends_of_workers.py"),
]

LONGEST_TRANSACTION_MS = 900_000
Written = list[tuple[int, int, bytes]]  # partition, offset and value of acknowledged records


def state_of(broker: BrokerProcess) -> dict[str, Any]:
    """The topics with their ids, and all that the leader of each partition tells of its log."""
    metadata: list[MetadataResponse] = []

    def all_have_leaders() -> bool:
        with WireClient(broker.port) as client:
            metadata[:] = [client.ask(MetadataRequest(topics=None), MetadataResponse, 12)]
        return all(one.leader_id >= 0 for topic in metadata[0].topics for one in topic.partitions)

    wait_until(all_have_leaders)
    ports = {node.node_id: node.port for node in metadata[0].brokers}
    found: dict[str, Any] = {}
    for topic in metadata[0].topics:
        if topic.is_internal:
            continue
        logs = found[f"{topic.name} {topic.topic_id.hex()}"] = {}
        for one in topic.partitions:
            with WireClient(ports[one.leader_id]) as client:
                logs[one.partition_index] = log_of(client, str(topic.name), one.partition_index)
    return found


def write_transactions(bootstrap: str) -> Producer:
    """A committed, an aborted and an open transaction, each with a record in each partition."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "one",
            "transaction.timeout.ms": LONGEST_TRANSACTION_MS,
        }
    )
    producer.init_transactions(30)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.flush):
        producer.begin_transaction()
        for index in range(PARTITIONS):
            producer.produce("paid", end.__name__, partition=index)
        end(30)
    return producer


def write_until_killed(broker: BrokerWithWorkers) -> Written:
    """Kill all processes while a producer writes. Returns what was acknowledged."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    written: Written = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            value = message.value()
            assert value is not None
            written.append((message.partition() or 0, message.offset() or 0, value))

    number = 0
    while len(written) < 2_000:
        value = f"w{number:06}"
        producer.produce("orders", value, partition=number % PARTITIONS, on_delivery=delivered)
        producer.poll(0.001 if number % 20 == 0 else 0)
        number += 1
    for worker in (1, 2):
        os.kill(broker.worker_pid(worker), signal.SIGKILL)
    broker.kill()
    broker.wait_for_workers()
    producer.purge()
    return written


def values_by_place(state: dict[str, Any]) -> dict[tuple[int, int], bytes]:
    """The values of the topic `orders` by partition and offset."""
    [logs] = [logs for name, logs in state.items() if name.startswith("orders ")]
    return {
        (index, offset): value
        for index, log in logs.items()
        for _, records in log["records"]
        for offset, _, _, value, _ in records
    }


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerWithWorkers]:
    made = BrokerWithWorkers(tmp_path / "shared").start()
    yield made
    made.stop()
    assert made.crashes_in_log() == []


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
def test_kafka_finds_what_workers_have_left_and_the_other_way_round(
    broker: BrokerWithWorkers, is_killed: bool, tmp_path: Path
) -> None:
    shared = SharedDirectory(broker.directory)
    for name in ("orders", "paid"):
        new_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), name)
    producer = write_transactions(broker.bootstrap)
    if is_killed:
        written = write_until_killed(broker)
        shutil.copytree(shared.data, tmp_path / "copy" / "data")
        with SharedDirectory(tmp_path / "copy").served_by("odradek", killed=False) as single:
            left = state_of(single)
        values = values_by_place(left)
        assert [values.get((index, offset)) for index, offset, _ in written] == [
            value for _, _, value in written
        ]
    else:
        left = state_of(broker)
        assert broker.terminate() == 0
    del producer
    with shared.served_by("kafka", killed=False) as kafka:
        same(left, state_of(kafka))
        produce(kafka.bootstrap, "orders", ["of kafka"] * PARTITIONS)
        left = state_of(kafka)
    broker.start()
    same(left, state_of(broker))
    produce(broker.bootstrap, "orders", ["of workers"] * PARTITIONS)
    left = state_of(broker)
    assert broker.terminate() == 0
    with shared.served_by("odradek", killed=False) as single:
        same(left, state_of(single))
