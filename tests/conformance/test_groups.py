"""Consumer groups: members come, leave and die while records flow."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance.group_watch import Group
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import JavaTools
from tests.support.topics import create_topic

PARTITIONS = 6

python_clients = [
    pytest.param(name, marks=pytest.mark.slow)
    for name in ("kafka-python", "aiokafka", "confluent-kafka")
]
every_client = [*python_clients, pytest.param("java", marks=pytest.mark.java)]


class Stream:
    """Writes a trickle of records into all partitions until it is told to stop."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()
        self.ends = dict.fromkeys(range(PARTITIONS), 0)

    def _write(self) -> None:
        number = 0
        while not self._stop.wait(0.02):
            for _ in range(20):
                partition = number % PARTITIONS
                self._producer.produce(self._topic, str(number), partition=partition)
                self.ends[partition] += 1
                number += 1
            self._producer.poll(0)

    def stop(self) -> dict[int, int]:
        """Write no more; the number of records of each partition."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(30) == 0
        return self.ends


@pytest.fixture
def stream(broker: BrokerProcess, topic: str) -> Iterator[Stream]:
    create_topic(broker.bootstrap, topic, PARTITIONS)
    writing = Stream(broker.bootstrap, topic)
    yield writing
    writing.stop()


def make_group(
    kind: str, broker: BrokerProcess, topic: str, scratch: Path, request: pytest.FixtureRequest
) -> Group:
    if kind == "java":
        request.getfixturevalue("java")
    return Group(kind, broker.bootstrap, topic, topic.replace("topic", "group"), scratch)


def committed(bootstrap: str, topic: str, group: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    try:
        return {found.partition: found.offset for found in consumer.committed(places, timeout=30)}
    finally:
        consumer.close()


@pytest.mark.parametrize("kind", every_client)
def test_three_members_share_the_work_when_one_is_added_killed_or_leaves(
    kind: str,
    broker: BrokerProcess,
    topic: str,
    stream: Stream,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    with make_group(kind, broker, topic, tmp_path, request) as group:
        group.add()
        second = group.add()
        group.wait_until_shared(3, 3)
        third = group.add()
        group.wait_until_shared(2, 2, 2)
        third.kill()
        group.wait_until_shared(3, 3)
        second.leave()
        group.wait_until_shared(6)
        ends = stream.stop()
        group.wait_until(lambda: len(group.read()) == sum(ends.values()), "everything read")
        group.assert_sound(ends)
        group.leave()
    assert committed(broker.bootstrap, topic, topic.replace("topic", "group")) == ends


@pytest.mark.parametrize("kind", every_client)
def test_a_static_member_that_comes_back_in_time_causes_no_rebalance(
    kind: str,
    broker: BrokerProcess,
    topic: str,
    stream: Stream,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    with make_group(kind, broker, topic, tmp_path, request) as group:
        first, second = group.add("one"), group.add("two")
        group.wait_until_shared(3, 3)
        owned = second.partitions
        assignments = len(first.heard("partitions_assigned"))
        second.kill()
        again = group.add("two")
        group.wait_until_shared(3, 3)
        assert again.partitions == owned
        assert len(first.heard("partitions_assigned")) == assignments
        ends = stream.stop()
        group.wait_until(lambda: len(group.read()) == sum(ends.values()), "everything read")
        group.assert_sound(ends)


@pytest.mark.java
@pytest.mark.parametrize("kind", ["kafka-python", "confluent-kafka"])
def test_members_of_different_clients_form_one_group(
    kind: str, broker: BrokerProcess, topic: str, stream: Stream, tmp_path: Path, java: JavaTools
) -> None:
    name = topic.replace("topic", "group")
    with (
        Group(kind, broker.bootstrap, topic, name, tmp_path) as ours,
        Group("java", broker.bootstrap, topic, name, tmp_path) as theirs,
    ):
        ours.add()
        theirs.add()
        ours.wait_until_shared(3)
        theirs.wait_until_shared(3)
        theirs.members[0].kill()
        ours.wait_until_shared(6)
        ends = stream.stop()

        def read() -> int:
            return len(ours.read() + theirs.read())

        ours.wait_until(lambda: read() == sum(ends.values()), "everything read")
        twice = [place for place, n in (ours.settled() + theirs.settled()).items() if n > 1]
        assert twice == []
