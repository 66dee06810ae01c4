"""kill -9 of the broker at random moments while its cleaner compacts what transactions write.

Every other start has the cleaner switched off: then what the kill has left must be whole, before
anybody can repair it. After each start, everybody's last batch must be known to be a repetition.
"""

import logging
import random
import time
from collections.abc import Callable
from functools import partial

import pytest

from tests.crash.isolated_reader import is_stable, read_all
from tests.crash.keyed_producers import VERSION_1, VERSION_2, KeyedProducer
from tests.crash.keyed_writes import KeyedWrites
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import MINUTES, SEED, by_length
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

SECONDS = by_length(20.0, max(MINUTES, 20.0) * 60)
CLEANING_SECONDS = 3.0
ACTIVE = 0.7  # the share of producers that write in a round
CLEANS = "log.cleaner.enable"
SETTINGS = {
    "log.cleaner.backoff.ms": "10",
    "log.cleaner.dedupe.buffer.size": "1048576",
    "log.segment.delete.delay.ms": "200",
    "log.initial.task.delay.ms": "0",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "50",
    # Cleaned segments stay small: so there are several, with a snapshot of producers for each.
    "internal.segment.bytes": "4096",
}
FOREVER = "86400000"
TOPICS = {
    "tombstones-stay": {**COMPACTED, "delete.retention.ms": FOREVER},
    "tombstones-go": {**COMPACTED, "delete.retention.ms": "0"},
    "tombstones-go-later": {**COMPACTED, "delete.retention.ms": "300"},
    "gzip": {**COMPACTED, "delete.retention.ms": "0", "compression.type": "gzip"},
}

logger = logging.getLogger(__name__)


def test_a_kill_while_transactions_are_cleaned_loses_nothing_and_no_producer(
    start_broker: Callable[..., BrokerProcess],
) -> None:
    chance = random.Random(SEED)
    broker = start_broker(**SETTINGS, **{CLEANS: "true"})
    topics = {name: KeyedWrites() for name in TOPICS}
    for name, config in TOPICS.items():
        create_topic(broker.bootstrap, name, config=config)
    producers = [
        KeyedProducer(f"{kind}-{SEED}-{number}", broker.port, topics, versions)
        for kind, versions in (("idempotent", None), ("v1", VERSION_1), ("v2", VERSION_2))
        for number in range(2)
    ]
    for producer in producers:
        producer.start()
    deadline = time.monotonic() + SECONDS
    rounds = 0
    try:
        while time.monotonic() < deadline or rounds < 4:
            play_round(broker, producers, chance)
            check(broker, topics, producers, chance)
            rounds += 1
    finally:
        for producer in producers:
            producer.end()
        logger.info("%d rounds, %d records", rounds, sum(map(len, topics.values())))
    broker.terminate()
    broker.settings[CLEANS] = "true"
    broker.start()
    for name, written in topics.items():
        wait_until(partial(has_fewer, broker, name, len(written)))


def has_fewer(broker: BrokerProcess, topic: str, records: int) -> bool:
    """Whether the topic was cleaned."""
    left = read_all(broker.port, topic, committed_only=False, fetch_bytes=1 << 20)
    return len(left.records) < records


def play_round(
    broker: BrokerProcess, producers: list[KeyedProducer], chance: random.Random
) -> None:
    """Let some of them write, kill the broker, and start it with or without its cleaner."""
    for producer in producers:
        if chance.random() < ACTIVE:
            producer.go.set()
    time.sleep(chance.uniform(0.1, 1.5))
    if chance.random() < 0.5 and broker.settings[CLEANS] == "true":
        wait_for_cleaning(broker)
        time.sleep(chance.choice([0, chance.uniform(0, 0.05)]))
    broker.kill()
    broker.settings[CLEANS] = chance.choice(["true", "false"])
    broker.start()
    for producer in producers:
        producer.park()


def wait_for_cleaning(broker: BrokerProcess) -> None:
    """Wait until a log is being cleaned; not for long, because none may be due."""
    deadline = time.monotonic() + CLEANING_SECONDS
    while time.monotonic() < deadline:
        for name in TOPICS:
            paths = (broker.data / f"{name}-0").iterdir()
            if any(path.suffix in {".cleaned", ".swap"} for path in paths):
                return
        time.sleep(0.001)


def check(
    broker: BrokerProcess,
    topics: dict[str, KeyedWrites],
    producers: list[KeyedProducer],
    chance: random.Random,
) -> None:
    is_cleaned = broker.settings[CLEANS] == "true"
    for producer in producers:
        producer.check_sequences()
    for name, written in topics.items():
        # The markers of a transaction may be written after its end was answered.
        wait_until(partial(is_stable, broker.port, name, written.first_open()))
        size = chance.choice([1, 3000, 1 << 20])
        committed = read_all(broker.port, name, committed_only=True, fetch_bytes=size)
        uncommitted = read_all(broker.port, name, committed_only=False, fetch_bytes=size)
        stay = TOPICS[name]["delete.retention.ms"] == FOREVER
        faults = written.faults_of(
            uncommitted, committed, tombstones_stay=stay or (None if is_cleaned else False)
        )
        assert faults == [], f"{name}: {faults[:5]}"
