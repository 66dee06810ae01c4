"""A broker whose partitions need more descriptors than it may have still serves its clients."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.topics import create_topic, delete_topic, topic_partitions
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

DESCRIPTORS = 256
PARTITIONS = 300
CLIENTS = 90  # each needs two descriptors, and the queue of the socket has room for 50


class FewDescriptors(BrokerProcess):
    """A broker that may have DESCRIPTORS descriptors."""

    def _command(self) -> list[str]:
        limited = f'ulimit -n {DESCRIPTORS}; exec "$@"'
        return ["/bin/sh", "-c", limited, "sh", *super()._command()]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    started = FewDescriptors(tmp_path).start()
    yield started
    started.stop()


def test_partitions_leave_descriptors_to_connections(broker: BrokerProcess) -> None:
    create_topic(broker.bootstrap, "many", PARTITIONS)
    assert topic_partitions(broker.bootstrap)["many"] == PARTITIONS  # with a new connection
    (offline,) = [line for line in broker.log_text().splitlines() if "more partitions:" in line]
    assert "Too many open files (raise ulimit -n" in offline
    delete_topic(broker.bootstrap, "many")
    create_topic(broker.bootstrap, "few", 10)
    assert "few-" not in broker.log_text()


def test_connections_without_a_descriptor_wait_for_one(broker: BrokerProcess) -> None:
    create_topic(broker.bootstrap, "t", 100)
    clients = [socket.create_connection(("127.0.0.1", broker.port), 10) for _ in range(CLIENTS)]
    wait_until(lambda: "no connection is accepted until others are closed" in broker.log_text())
    for client in clients:
        client.close()
    assert topic_partitions(broker.bootstrap)["t"] == 100
    assert broker.log_text().count("Too many open files") == 1
