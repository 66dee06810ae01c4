"""kill -9 of the broker while its cleaner compacts what is written all the while.

Every other start has the cleaner switched off: then what the kill has left must be whole, before
anybody can repair it.
"""

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.crash import pace
from tests.crash.writers import ConfluentWriter
from tests.support.broker_process import BrokerProcess
from tests.support.compaction import alter_topic, stored_records
from tests.support.lengths import SEED, by_length
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

ROUNDS = by_length(3, 40)
KEYS = 50
PATIENCE_SECONDS = 60.0
CLEANS = "log.cleaner.enable"
SETTINGS = {
    "log.cleaner.backoff.ms": "10",
    "log.cleaner.dedupe.buffer.size": "1048577",
    "log.segment.delete.delay.ms": "200",
    "log.initial.task.delay.ms": "0",
}
TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "50",
}


class KeyedWriter(ConfluentWriter):
    """Record number n has the key n % KEYS, and lies in partition 0."""

    def _run(self) -> None:
        while not self._stop.wait(pace.PAUSE_SECONDS):
            self._producer.poll(0)
            if self.written - len(self.ledger) > pace.UNANSWERED:
                continue
            for _ in range(pace.BURST):
                value = f"{self.name}-{self.written}"
                key = b"%d" % (self.written % KEYS)
                self._producer.produce(
                    self.topic, value.encode(), key, partition=0, on_delivery=self._delivered
                )
                self.written += 1
        self._producer.flush(pace.DELIVERY_SECONDS)


def test_a_kill_in_the_middle_of_cleaning_loses_nothing(
    start_broker: Callable[..., BrokerProcess],
) -> None:
    chance = random.Random(SEED)
    broker = start_broker(**SETTINGS)
    writer = KeyedWriter(broker.bootstrap, "keyed", idempotent=True)
    create_topic(broker.bootstrap, writer.topic, config=TOPIC_SETTINGS)
    directory = broker.data / f"{writer.topic}-0"
    writer.start()
    try:
        for number in range(ROUNDS):
            wait_for_a_round(broker)
            wait_until(lambda: unfinished(directory), poll_s=0.001)
            time.sleep(chance.choice([0, 0, chance.uniform(0, 0.05)]))
            processes = children(broker.pid)
            broker.kill()
            wait_until(lambda pids=processes: not any(map(is_there, pids)))
            broker.settings[CLEANS] = "false"
            broker.start()
            assert unfinished(directory) == []
            assert_kept(broker.bootstrap, writer)
            (broker.kill if number % 2 else broker.terminate)()
            broker.settings[CLEANS] = "true"
            broker.start()
    finally:
        if not broker.is_running:
            broker.start()
        writer.stop()
    assert_kept(broker.bootstrap, writer)
    assert len(writer.ledger) == writer.written
    assert writer.errors == []
    assert len(stored_records(broker.bootstrap, writer.topic)) < writer.written


def unfinished(directory: Path) -> list[str]:
    names = [path.name for path in directory.iterdir()]
    return [name for name in names if name.endswith((".cleaned", ".swap"))]


def rounds_done(broker: BrokerProcess) -> int:
    return broker.log_text().count("cleaned offsets")


def wait_for_a_round(broker: BrokerProcess) -> None:
    before = rounds_done(broker)
    wait_until(lambda: rounds_done(broker) > before)


def children(pid: int) -> list[int]:
    """The processes that it has started."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in found for child in path.read_text().split()]


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def assert_kept(bootstrap: str, writer: KeyedWriter) -> None:
    """Of every key there is the newest record that was acknowledged, or one that came later."""
    promised = writer.ledger.promises().get(0, {})  # before the reading
    stored = stored_records(bootstrap, writer.topic)
    offsets = [offset for offset, _, _ in stored]
    assert offsets == sorted(set(offsets))
    for offset, _, value in stored:
        assert promised.get(offset, value) == value
    newest = {key: number_of(value) for _, key, value in stored}
    for value in promised.values():
        number = number_of(value)
        assert newest.get(b"%d" % (number % KEYS), -1) >= number, f"{value!r} is lost"


def number_of(value: bytes) -> int:
    return int(value.rpartition(b"-")[2])


def test_committed_offsets_survive_the_cleaning_of_their_topic(
    start_broker: Callable[..., BrokerProcess],
) -> None:
    broker = start_broker(
        **SETTINGS,
        **{
            "log.cleaner.min.cleanable.ratio": "0.01",
            "offsets.topic.num.partitions": "1",
        },
    )
    create_topic(broker.bootstrap, "t", 3)
    consumers = [
        Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"group-{number}"})
        for number in range(3)
    ]
    consumers[0].commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
    alter_topic(broker.bootstrap, "__consumer_offsets", "segment.ms", "50")
    for offset in range(200):
        for number, consumer in enumerate(consumers):
            place = TopicPartition("t", number, offset)
            consumer.commit(offsets=[place], asynchronous=False)
        time.sleep(0.002)
    directory = broker.data / "__consumer_offsets-0"
    wait_until(lambda: "__consumer_offsets-0: cleaned" in broker.log_text())
    wait_until(lambda: len(list(directory.glob("*.log"))) < 3)
    broker.kill()
    broker.start()
    for number, consumer in enumerate(consumers):
        [found] = consumer.committed([TopicPartition("t", number)], timeout=PATIENCE_SECONDS)
        assert found.offset == 199
        consumer.close()
