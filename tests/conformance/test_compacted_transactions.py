"""Apache Kafka and odradek compact the same transactions: the same batches are left.

In the first round the records of aborted transactions go. In the second one, tombstones go and the
markers of transactions that the first round has emptied: `delete.retention.ms` is 0.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from odradek.protocol.records.control import control_type
from odradek.storage.log_reader import LogReader
from tests.crash.isolated_reader import ends, read_all
from tests.crash.keyed_producers import VERSION_1, VERSION_2, KeyedProducer
from tests.crash.keyed_writes import KeyedWrites, Reading
from tests.support.broker_process import ApacheKafkaProcess, BrokerProcess, running
from tests.support.compaction import (
    HELD_BACK,
    LOOKS_SOON,
    alter_topic,
    clean_up_to,
    let_it_be_cleaned,
)
from tests.support.lengths import SEED
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.java]

TOPIC = "compacted"
TOPIC_SETTINGS = {**HELD_BACK, "internal.segment.bytes": "5000", "delete.retention.ms": "0"}
ROUNDS = 2
STEPS = 150  # in each round


class Left(NamedTuple):
    """A batch, without its times. `producer` counts the ids in the order of their first batches."""

    offsets: tuple[int, int]
    producer: int
    epoch: int
    base_sequence: int
    records: Sequence[object]


class Found(NamedTuple):
    """What a round has left."""

    clean_up_to: int | None
    batches: Sequence[Left]
    committed: Reading
    uncommitted: Reading


def test_kafka_and_odradek_leave_the_same_batches_of_the_same_transactions(tmp_path: Path) -> None:
    settings = {**LOOKS_SOON, "transaction.state.log.num.partitions": "1"}
    found = []
    for kind in (BrokerProcess, ApacheKafkaProcess):
        with running(kind(tmp_path / kind.name, settings)) as broker:
            found.append(list(compacted(broker)))
    ours, kafkas = found
    for number in range(ROUNDS):
        assert ours[number] == kafkas[number], f"round {number}"
    assert len(ours[-1].uncommitted.records) < ours[-1].uncommitted.end_offset / 2


def compacted(broker: BrokerProcess) -> Iterator[Found]:
    """Write and clean the topic round after round."""
    create_topic(broker.bootstrap, TOPIC, config=TOPIC_SETTINGS)
    written = KeyedWrites()
    producers = [
        KeyedProducer(f"{kind}-{SEED}-{number}", broker.port, {TOPIC: written}, versions)
        for kind, versions in (("idempotent", None), ("v1", VERSION_1), ("v2", VERSION_2))
        for number in range(2)
    ]
    for producer in producers:
        producer.begin()
    clean_end = None
    for _ in range(ROUNDS):
        alter_topic(broker.bootstrap, TOPIC, "min.cleanable.dirty.ratio", "1.0")
        for number in range(STEPS):
            producers[number % len(producers)].step()
            # Kafka writes markers after it has answered.
            wait_until(partial(ends_at, broker.port, written.end_offset()))
        let_it_be_cleaned(broker.bootstrap, TOPIC)
        wait_until(partial(is_cleaned_after, broker.data, clean_end))
        clean_end = clean_up_to(broker.data, TOPIC)
        readings = [
            read_all(broker.port, TOPIC, committed_only=committed, fetch_bytes=1 << 20)
            for committed in (True, False)
        ]
        assert written.faults_of(readings[1], readings[0], tombstones_stay=False) == []
        yield Found(clean_end, list(batches(broker.data / f"{TOPIC}-0")), *readings)
    for producer in producers:
        producer.close()


def ends_at(port: int, offset: int) -> bool:
    return ends(port, TOPIC)[1] == offset


def is_cleaned_after(data: Path, before: int | None) -> bool:
    end = clean_up_to(data, TOPIC)
    return end is not None and (before is None or end > before)


def batches(directory: Path) -> Iterator[Left]:
    """All batches of a log."""
    known: list[int] = []
    for batch in LogReader(directory).batches():
        header = batch.header
        if header.producer_id not in known:
            known.append(header.producer_id)
        yield Left(
            offsets=(header.base_offset, header.last_offset),
            producer=known.index(header.producer_id),
            epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            records=[
                control_type(record.key)
                if header.is_control
                else (record.offset, bytes(record.key or b""), record.value and bytes(record.value))
                for record in batch.records()
            ],
        )
