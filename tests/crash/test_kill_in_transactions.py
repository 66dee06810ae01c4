"""kill -9 while one topic is copied to another exactly once, in groups of both protocols."""

import random
import time
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Producer

from tests.crash.copier import Copier
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import SEED, by_length
from tests.support.topics import create_topic

pytestmark = pytest.mark.slow

ROUNDS = by_length(5, 200)
PARTITIONS = 3
RECORDS_PER_ROUND = 200
LIFE_SECONDS = (0.3, 1.5)
READ_SECONDS = 90.0


def produce(bootstrap: str, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in numbers:
        producer.produce(topic, str(number), partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def read(bootstrap: str, topic: str, count: int, isolation: str) -> list[int]:
    """At least `count` records, or what is there when the patience ends, and a little more."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{isolation}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": isolation,
        }
    )
    consumer.subscribe([topic])
    found: list[int] = []
    deadline = time.monotonic() + READ_SECONDS
    while time.monotonic() < deadline:
        messages = consumer.consume(1000, 0.5)
        found += [int(each.value()) for each in messages if each.error() is None]
        if len(found) >= count and not messages:
            break
    consumer.close()
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_copy_is_exact_through_kills(
    start_broker: Callable[..., BrokerProcess], protocol: str
) -> None:
    chance = random.Random(SEED)
    broker = start_broker(
        **{"log.segment.bytes": str(1 << 20), "group.initial.rebalance.delay.ms": "0"}
    )
    source, target = f"from-{protocol}", f"to-{protocol}"
    for topic in (source, target):
        create_topic(broker.bootstrap, topic, PARTITIONS)
    copier = Copier(broker.bootstrap, source, target, partitions=PARTITIONS, protocol=protocol)
    copier.start()
    total = 0
    for _ in range(ROUNDS):
        produce(broker.bootstrap, source, range(total, total + RECORDS_PER_ROUND))
        total += RECORDS_PER_ROUND
        time.sleep(chance.uniform(*LIFE_SECONDS))
        broker.kill()
        broker.start()
    committed = read(broker.bootstrap, target, total, "read_committed")
    copier.stop()
    assert copier.failure is None
    assert sorted(committed) == list(range(total))
    everything = read(broker.bootstrap, target, total, "read_uncommitted")
    assert set(everything) == set(range(total))
