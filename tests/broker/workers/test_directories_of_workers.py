"""Workers with several log directories, of which one fails."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient

from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from tests.support.broker_with_workers import (
    PARTITIONS,
    BrokerWithWorkers,
    new_topic,
    produce,
    values_in,
)
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerWithWorkers]:
    made = BrokerWithWorkers(tmp_path / "broker")
    made.settings["log.dirs"] = f"{made.data},{tmp_path / 'third'},{tmp_path / 'other'}"
    made.settings["log.segment.bytes"] = "1048576"
    made.start()
    yield made
    made.stop()
    assert made.crashes_in_log() == []


def leaders(broker: BrokerWithWorkers, topic: str) -> list[int]:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    partitions = admin.list_topics(topic, timeout=30).topics[topic].partitions
    return [partitions[index].leader for index in range(PARTITIONS)]


def test_a_directory_that_fails_in_a_worker_is_offline_everywhere(
    broker: BrokerWithWorkers, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    new_topic(admin, "orders")
    before = leaders(broker, "orders")
    lost = [index for index in range(PARTITIONS) if (tmp_path / f"other/orders-{index}").exists()]
    assert {before[index] for index in lost} == {1, 2}, "both workers have a log there"
    shutil.rmtree(tmp_path / "other")
    (tmp_path / "other").touch()  # nothing can be created there
    one = lost[0]
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 5_000})
    errors: list[KafkaError | None] = []
    for _ in range(3):  # the second or third rolls the segment
        producer.produce(
            "orders", bytes(900_000), partition=one, on_delivery=lambda e, _: errors.append(e)
        )
        producer.flush(30)
    assert any(errors)
    expected = [-1 if index in lost else before[index] for index in range(PARTITIONS)]
    wait_until(lambda: leaders(broker, "orders") == expected)
    kept = next(index for index in range(PARTITIONS) if index not in lost)
    errors.clear()
    producer.produce("orders", "kept", partition=kept, on_delivery=lambda e, _: errors.append(e))
    producer.flush(30)
    assert errors == [None]


def test_a_worker_moves_its_logs_to_another_directory(
    broker: BrokerWithWorkers, tmp_path: Path
) -> None:
    new_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "orders")
    produce(broker.bootstrap, "orders", ["one"] * PARTITIONS)
    target = tmp_path / "third"
    for index, leader in enumerate(leaders(broker, "orders")):
        wanted = AlterReplicaLogDirTopic(name="orders", partitions=[index])
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=str(target), topics=[wanted])]
        )
        with WireClient(int(broker.bootstrap_of(leader).split(":")[1])) as client:
            response = client.ask(request, AlterReplicaLogDirsResponse, 2)
        assert response.results[0].partitions[0].error_code == ErrorCode.NONE
    moved = [target / f"orders-{index}" for index in range(PARTITIONS)]
    wait_until(lambda: all(path.exists() for path in moved))
    produce(broker.bootstrap, "orders", ["two"] * PARTITIONS)
    broker.kill()
    broker.wait_for_workers()
    broker.start()
    assert values_in(broker.bootstrap, "orders", 2 * PARTITIONS) == sorted(
        ["one", "two"] * PARTITIONS
    )
    assert broker.terminate() == 0
    assert all(path.exists() for path in moved)


def test_logs_in_several_directories_are_found_again(broker: BrokerWithWorkers) -> None:
    new_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "orders")
    produce(broker.bootstrap, "orders", ["one"] * PARTITIONS)
    assert broker.terminate() == 0
    broker.start()
    assert values_in(broker.bootstrap, "orders", PARTITIONS) == ["one"] * PARTITIONS
