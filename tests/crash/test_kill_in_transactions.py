"""kill -9 while one topic is copied to another exactly once, in groups of both protocols."""

import random
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer

from tests.support.broker_process import BrokerProcess
from tests.support.lengths import SEED, by_length
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow

ROUNDS = by_length(5, 200)
PARTITIONS = 3
RECORDS_PER_ROUND = 200
LIFE_SECONDS = (0.3, 1.5)
RETRY_SECONDS = 20.0
MOST_RESTARTS = 5
# Sessions are short, so that a client that was killed does not hold its group up.
SETTINGS = {
    "log.segment.bytes": str(1 << 20),
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
}


def produce(bootstrap: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in numbers:
        producer.produce(topic, str(number), partition=number % PARTITIONS)
    assert producer.flush(30) == 0


class Copy:
    """The program that copies, killed and started again."""

    def __init__(self, *arguments: str) -> None:
        self._command = [sys.executable, "-m", "tests.crash.copier", *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


class Reader:
    """What a consumer of an isolation level has seen of a topic."""

    def __init__(self, bootstrap: str, topic: str, isolation: str) -> None:
        self.found: list[int] = []
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"reader-{isolation}",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": isolation,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([topic])

    def read_to(self, count: int, seconds: float) -> bool:
        """Read until `count` records are there and no more come; False if that takes longer."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            messages = self._consumer.consume(1000, 0.5)
            self.found += [int(each.value()) for each in messages if each.error() is None]
            if len(self.found) >= count and not messages:
                return True
        return False

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_copy_is_exact_through_kills_of_the_broker_and_the_client(
    start_broker: Callable[..., BrokerProcess], protocol: str
) -> None:
    chance = random.Random(SEED)
    broker = start_broker(**SETTINGS)
    source, target = f"from-{protocol}", f"to-{protocol}"
    for topic in (source, target):
        create_topic(broker.bootstrap, topic, PARTITIONS)
    copy = Copy(broker.bootstrap, source, target, protocol)
    total = 0
    try:
        for _ in range(ROUNDS):
            copy.start()
            produce(broker.bootstrap, source, range(total, total + RECORDS_PER_ROUND))
            total += RECORDS_PER_ROUND
            time.sleep(chance.uniform(*LIFE_SECONDS))
            broker.kill()
            time.sleep(chance.uniform(0, 0.2))
            copy.kill()
            broker.start()
        committed = Reader(broker.bootstrap, target, "read_committed")
        copy.start()
        while (
            not committed.read_to(total, RETRY_SECONDS) and copy.restarts < ROUNDS + MOST_RESTARTS
        ):
            copy.kill()  # librdkafka #5456: a client may hang for good
            copy.start()
        committed.close()
    finally:
        copy.kill()
    assert sorted(committed.found) == list(range(total))
    everything = Reader(broker.bootstrap, target, "read_uncommitted")
    everything.read_to(total, RETRY_SECONDS)
    everything.close()
    assert set(everything.found) == set(range(total))
