"""Apache Kafka and odradek compact the same log: what a consumer finds then is the same."""

import random
import time
from pathlib import Path

import pytest

from odradek.protocol.compression import CompressionType
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess
from tests.support.bystander import produce
from tests.support.compaction import (
    HELD_BACK,
    LOOKS_SOON,
    clean_up_to,
    let_it_be_cleaned,
    stored_records,
)
from tests.support.topics import create_topic
from tests.support.wire import WireClient

pytestmark = [pytest.mark.slow, pytest.mark.java]

TOPIC = "compacted"
TOPIC_SETTINGS = {**HELD_BACK, "segment.bytes": "1048576"}
BATCHES = 250
KEYS = 700
NOW_MS = time.time_ns() // 1_000_000
PATIENCE_SECONDS = 180.0


def batches() -> list[bytes]:
    """Records of 700 keys, one in ten a tombstone, in all codecs; four segments and more."""
    rng = random.Random(7)
    made = []
    for number in range(BATCHES):
        records = []
        for _ in range(rng.randrange(1, 40)):
            key = b"key-%d" % rng.randrange(KEYS)
            value = None if rng.random() < 0.1 else rng.randbytes(rng.randrange(2000))
            headers = (("number", b"%d" % number),)
            records.append(Record(key, value, NOW_MS + number, headers))
        codec = rng.choice(list(CompressionType))
        made.append(bytes(build_batch(records, compression=codec)))
    return made


def compacted(broker: BrokerProcess) -> tuple[int, list[tuple[int, bytes | None, bytes | None]]]:
    """Up to where one round has cleaned the log, and what is left in it."""
    create_topic(broker.bootstrap, TOPIC, config=TOPIC_SETTINGS)
    time.sleep(1.0)  # Kafka's new partition has no leader yet when the answer leaves
    with WireClient(broker.port) as client:
        for batch in batches():
            produce(client, TOPIC, batch)
    let_it_be_cleaned(broker.bootstrap, TOPIC)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (end_offset := clean_up_to(broker.data, TOPIC)) is None:
        assert time.monotonic() < deadline, f"{broker.name} does not clean"
        time.sleep(0.05)
    return end_offset, stored_records(broker.bootstrap, TOPIC)


def test_kafka_and_odradek_leave_the_same_records_of_the_same_log(tmp_path: Path) -> None:
    found = []
    for kind in (BrokerProcess, ApacheKafkaProcess):
        broker = kind(tmp_path / kind.name, LOOKS_SOON)
        try:
            found.append(compacted(broker.start()))
        finally:
            broker.stop()
    (our_end, ours), (kafkas_end, kafkas) = found
    assert our_end == kafkas_end > 0
    assert [record[:2] for record in ours] == [record[:2] for record in kafkas]
    assert ours == kafkas
    below = [key for offset, key, _ in ours if offset < our_end]
    assert len(below) == len(set(below)) <= KEYS
