"""Workers, the broker's own process, or all of them end, cleanly or not."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from odradek.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from odradek.storage.checkpoints import read_offsets
from odradek.storage.directories.log_share import LogShare
from odradek.storage.filenames import (
    CLEAN_SHUTDOWN,
    LEADER_EPOCH_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
)
from odradek.storage.files import Files
from tests.support.broker_process import BrokerProcess
from tests.support.broker_with_workers import (
    PARTITIONS,
    BrokerWithWorkers,
    is_running,
    new_topic,
    produce,
    values_in,
)
from tests.support.hang_ups import children_inherit
from tests.support.lengths import by_length, only_long
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

VALUES = [f"value-{number:03}" for number in range(120)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerWithWorkers]:
    with children_inherit(signal.SIG_DFL):  # the tests themselves may have been started by nohup
        made = BrokerWithWorkers(tmp_path / "broker").start()
    new_topic(AdminClient({"bootstrap.servers": made.bootstrap}), "orders")
    produce(made.bootstrap, "orders", VALUES)
    yield made
    made.stop()
    assert made.crashes_in_log() == []


def read_in_one_process(broker: BrokerWithWorkers, values: list[str]) -> None:
    """Start the directory without workers, check its records, and add one to each partition."""
    single = BrokerProcess(broker.directory).start()
    try:
        assert values_in(single.bootstrap, "orders", len(values)) == values
        produce(single.bootstrap, "orders", ["zzz"] * PARTITIONS)
    finally:
        assert single.terminate() == 0


def test_after_a_clean_stop_one_process_goes_on_and_then_workers_again(
    broker: BrokerWithWorkers,
) -> None:
    assert broker.terminate() == 0
    assert (broker.data / CLEAN_SHUTDOWN).exists()
    points = read_offsets(Files(), broker.data / RECOVERY_POINT_CHECKPOINT)
    assert [points["orders", index] for index in range(PARTITIONS)] == [20] * PARTITIONS
    read_in_one_process(broker, VALUES)
    broker.start()
    values = [*VALUES, *["zzz"] * PARTITIONS]
    assert values_in(broker.bootstrap, "orders", len(values)) == values


def test_a_killed_worker_is_started_again_and_keeps_its_records(broker: BrokerWithWorkers) -> None:
    first = broker.worker_pid(1)
    os.kill(first, signal.SIGKILL)
    produce(broker.bootstrap, "orders", ["zzz"] * PARTITIONS)  # to both workers
    assert broker.worker_pid(1) != first
    values = [*VALUES, *["zzz"] * PARTITIONS]
    assert values_in(broker.bootstrap, "orders", len(values)) == values
    assert broker.terminate() == 0
    assert (broker.data / CLEAN_SHUTDOWN).exists()


def test_a_worker_that_hangs_is_started_again(tmp_path: Path) -> None:
    timeouts = {"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "6000"}
    broker = BrokerWithWorkers(tmp_path / "broker", overrides=timeouts).start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        new_topic(admin, "orders")
        produce(broker.bootstrap, "orders", VALUES)
        partitions = admin.list_topics("orders", timeout=30).topics["orders"].partitions
        [other, *_] = [index for index, each in partitions.items() if each.leader == 2]
        hanging = broker.worker_pid(1)
        os.kill(hanging, signal.SIGSTOP)
        produce_to(broker.bootstrap_of(2), "orders", other)
        assert is_running(hanging)  # the other worker does not wait for it
        produce(broker.bootstrap, "orders", ["zzz"] * PARTITIONS)
        assert broker.worker_pid(1) != hanging
        values = [*VALUES, "other", *["zzz"] * PARTITIONS]
        assert values_in(broker.bootstrap, "orders", len(values)) == sorted(values)
    finally:
        assert broker.terminate() == 0
    assert broker.crashes_in_log() == []


@only_long("one that hangs later is started again above")
def test_a_worker_that_hangs_while_it_starts_is_started_again(broker: BrokerWithWorkers) -> None:
    assert broker.terminate() == 0
    owner = LogShare(0, 2).owner
    [partition, *_] = [index for index in range(PARTITIONS) if owner("orders", index) == 1]
    epochs = broker.data / f"orders-{partition}" / LEADER_EPOCH_CHECKPOINT
    content = epochs.read_bytes()
    epochs.unlink()
    os.mkfifo(epochs)  # it cannot be opened before somebody writes to it
    broker.settings |= {"broker.heartbeat.interval.ms": "500", "broker.session.timeout.ms": "6000"}
    broker.start_without_waiting()
    wait_until(lambda: "worker 1 hangs while it starts" in broker.log_text())
    epochs.unlink()
    epochs.write_bytes(content)
    broker.wait_until_ready()
    assert "worker 2 hangs" not in broker.log_text()
    produce(broker.bootstrap, "orders", ["zzz"] * PARTITIONS)
    values = [*VALUES, *["zzz"] * PARTITIONS]
    assert values_in(broker.bootstrap, "orders", len(values)) == values
    assert broker.terminate() == 0
    assert (broker.data / CLEAN_SHUTDOWN).exists()


def produce_to(bootstrap: str, topic: str, partition: int) -> None:
    """Produce one record to a partition."""
    producer = Producer({"bootstrap.servers": bootstrap})
    errors: list[KafkaError | None] = []
    producer.produce(topic, "other", partition=partition, on_delivery=lambda e, _: errors.append(e))
    assert producer.flush(30) == 0
    assert errors == [None]


@only_long("stops and ends of workers are apart above")
def test_a_stop_right_after_the_end_of_a_worker_is_not_clean(broker: BrokerWithWorkers) -> None:
    os.kill(broker.worker_pid(1), signal.SIGKILL)
    wait_until(lambda: "ended with -9" in broker.log_text())
    assert broker.terminate() == 0
    # Half a second later it is started again: then it has closed its logs.
    was_again = len(re.findall(r"worker 1 \(process \d+\) serves", broker.log_text())) == 2
    assert (broker.data / CLEAN_SHUTDOWN).exists() == was_again
    read_in_one_process(broker, VALUES)


@only_long("a killed worker keeps its records above")
def test_acknowledged_records_survive_killed_workers_once(broker: BrokerWithWorkers) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    written: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None
        value = message.value()
        assert value is not None
        written.append(value.decode())

    for number in range(4_000):
        producer.produce(
            "orders", f"w{number:05}", partition=number % PARTITIONS, on_delivery=delivered
        )
        producer.poll(0.001)
        if number % 1_000 == 500:
            broker.kill_worker(1 + number // 1_000 % 2)
    assert producer.flush(60) == 0
    broker.kill()
    broker.wait_for_workers()
    broker.start()
    assert len(written) == 4_000
    wanted = sorted([*VALUES, *written])
    assert values_in(broker.bootstrap, "orders", len(wanted)) == wanted


@only_long("a stop is clean, and the end of a worker is noticed above")
def test_a_topic_deleted_while_a_worker_is_down_is_gone(broker: BrokerWithWorkers) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    os.kill(broker.worker_pid(1), signal.SIGKILL)
    admin.delete_topics(["orders"])["orders"].result(30)
    new_topic(admin, "orders")
    produce(broker.bootstrap, "orders", ["one"] * PARTITIONS)
    assert values_in(broker.bootstrap, "orders", PARTITIONS) == ["one"] * PARTITIONS
    # Nobody would ever delete a stray log.
    assert len(list(broker.data.glob("orders-*-delete"))) == PARTITIONS
    assert list(broker.data.glob("orders-*-stray")) == []


def test_a_worker_removes_what_was_deleted_before_it_ended(tmp_path: Path) -> None:
    delay = {"log.segment.delete.delay.ms": "2000"}
    broker = BrokerWithWorkers(tmp_path / "broker", overrides=delay).start()
    try:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        new_topic(admin, "orders")
        admin.delete_topics(["orders"])["orders"].result(30)
        os.kill(broker.worker_pid(1), signal.SIGKILL)
        assert list(broker.data.glob("orders-*-delete"))
        wait_until(lambda: not list(broker.data.glob("orders-*")))
    finally:
        assert broker.terminate() == 0


@only_long("a stop is clean, and the end of a worker is noticed above")
def test_workers_end_with_the_broker_and_the_directory_recovers(broker: BrokerWithWorkers) -> None:
    broker.kill()
    broker.wait_for_workers()
    assert not (broker.data / CLEAN_SHUTDOWN).exists()
    broker.start()
    assert values_in(broker.bootstrap, "orders", len(VALUES)) == VALUES
    broker.kill()
    broker.wait_for_workers()
    read_in_one_process(broker, VALUES)


def test_each_producer_gets_an_id_of_its_own_whichever_node_it_asks(
    broker: BrokerWithWorkers,
) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)

    def new_ids() -> Iterator[int]:
        for node in range(3):
            with WireClient(broker.port_of(node)) as client:
                yield client.ask(request, InitProducerIdResponse, 4).producer_id

    found = [*new_ids(), *new_ids()]
    broker.kill()
    broker.wait_for_workers()
    broker.start()
    found += new_ids()
    assert min(found) >= 0
    assert len({*found}) == len(found)


def test_no_broker_opens_a_directory_in_which_a_worker_may_still_write(
    broker: BrokerWithWorkers,
) -> None:
    worker = broker.worker_pid(1)
    os.kill(worker, signal.SIGSTOP)
    broker.kill()
    single = BrokerProcess(broker.directory)
    single.start_without_waiting()
    assert single.wait_for_end() == 1
    assert "is in use" in single.log_text()
    os.kill(worker, signal.SIGCONT)
    wait_until(lambda: not is_running(worker))


@pytest.mark.parametrize("number", by_length([signal.SIGINT], [signal.SIGINT, signal.SIGHUP]))
def test_a_stop_by_a_terminal_is_clean(number: signal.Signals, broker: BrokerWithWorkers) -> None:
    for pid in (broker.worker_pid(1), broker.worker_pid(2)):
        os.kill(pid, number)  # a terminal sends it to all processes
    assert (broker.interrupt() if number == signal.SIGINT else broker.hang_up()) == 0
    assert (broker.data / CLEAN_SHUTDOWN).exists()


@only_long("logs are recovered while others are served in test_log_recovery.py")
def test_a_large_log_is_recovered_while_the_others_are_served(broker: BrokerWithWorkers) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for _ in range(90):  # more than is read before a worker serves (READ_AT_ONCE_BYTES)
        producer.produce("orders", bytes(900_000), partition=0)
    assert producer.flush(60) == 0
    broker.kill()
    broker.wait_for_workers()
    broker.start()
    assert "recovering 1 logs of 77 MiB while the others are served" in broker.log_text()
    produce(broker.bootstrap, "orders", ["zzz"] * PARTITIONS)  # it waits for that log
    asked = {TopicPartition("orders", index): OffsetSpec.latest() for index in range(PARTITIONS)}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    found = [each.result(30).offset for each in admin.list_offsets(asked).values()]
    assert found == [111, 21, 21, 21, 21, 21]
