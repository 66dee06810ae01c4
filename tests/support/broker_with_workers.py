"""A broker with worker processes, as its users start it."""

import contextlib
import os
import re
import signal
import socket
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.broker_process import WORKERS as TEST_PROCESSES
from tests.support.broker_process import BrokerProcess, free_ports
from tests.support.waiting import wait_until

PARTITIONS = 6


class BrokerWithWorkers(BrokerProcess):
    """`odradek serve` with `odradek.workers`. Worker k is the node k; the broker itself is 0."""

    def __init__(
        self, directory: Path, workers: int = 2, overrides: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(directory, overrides)
        self.port = free_base(workers)
        self.settings |= self._listeners() | {
            "odradek.workers": str(workers),
            "odradek.workers.port.step": str(TEST_PROCESSES),
        }

    def bootstrap_of(self, worker: int) -> str:
        """Where a worker listens."""
        return f"127.0.0.1:{self.port_of(worker)}"

    def port_of(self, node: int) -> int:
        """The port of the broker itself, or of a worker."""
        return self.port + node * TEST_PROCESSES

    def worker_pid(self, worker: int) -> int:
        """The process id of a worker, from the broker's log lines."""
        found = re.findall(rf"worker {worker} \(process (\d+)\) serves", self.log_text())
        return int(found[-1])

    def kill_worker(self, worker: int) -> None:
        """SIGKILL a worker, as soon as it serves again if it was killed before."""
        wait_until(lambda: is_running(self.worker_pid(worker)))
        os.kill(self.worker_pid(worker), signal.SIGKILL)

    def wait_for_workers(self) -> None:
        """Return when both workers have ended, after the broker's own process was killed."""
        workers = [self.worker_pid(worker) for worker in (1, 2)]
        wait_until(lambda: not any(map(is_running, workers)))


def is_running(pid: int) -> bool:
    """Whether the process has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def free_base(workers: int) -> int:
    """A port on which nobody listens, nor on those of the workers after it."""
    while True:
        [base] = free_ports(1)
        if all(is_free(base + worker * TEST_PROCESSES) for worker in range(1, workers + 1)):
            return base


def is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return True
    return False


def new_topic(admin: AdminClient, name: str) -> str:
    """Create a topic with PARTITIONS partitions."""
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result(30)
    return name


def produce(bootstrap: str, topic: str, values: list[str]) -> None:
    """Produce with idempotence, value by value to the next partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(error)

    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS, on_delivery=delivered)
    assert producer.flush(30) == 0
    assert errors == []


def values_in(bootstrap: str, topic: str, count: int) -> list[str]:
    """The values of the first `count` records of a topic, sorted."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": str(uuid.uuid4()),
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    found: list[str] = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None, f"only {len(found)} of {count} records"
        value = message.value()
        assert message.error() is None
        assert value is not None
        found.append(value.decode())
    consumer.close()
    return sorted(found)
