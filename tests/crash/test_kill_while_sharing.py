"""kill -9 of the broker while members of a share group settle records that are not in memory.

After each kill the locks are gone and the records come again, but for those of which an
acknowledgement was answered: these are done. In the end each record is done, nothing is locked, and
those that were rejected are in the dead-letter queue.
"""

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from odradek.protocol.batch_header import read_header
from odradek.protocol.compression import CompressionType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponsePartition,
)
from odradek.protocol.messages.produce import (
    ProducePartitionData,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicData,
)
from odradek.protocol.record import Record, read_records
from tests.conformance.requests import BY_NAME, batch_of
from tests.conformance.share_reader import joined, prepare_group
from tests.conformance.transcript import each_batch
from tests.crash.settled import Place, Settled
from tests.crash.sharers import Group, Sharer
from tests.support.broker_process import (
    BrokerProcess,
    against_apache_kafka,
    make_broker,
    why_no_broker,
)
from tests.support.cold_broker import ColdBroker
from tests.support.lengths import SEED, by_length
from tests.support.stored_batches import fetch
from tests.support.topics import create_topic
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

pytestmark = pytest.mark.slow

ROUNDS = by_length(2, 60)
LIFE_SECONDS = (0.2, 1.0)
TOPIC, GROUP = "orders", "cooks"
PARTITIONS = 4
MEMBERS = 5
BATCHES = 60  # in each round, to each partition
LOCK_SECONDS = 1.0
SETTINGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "share.coordinator.snapshot.update.records.per.snapshot": "50",
}
# The records of a batch are a second apart: the longest ones begin a segment.
TOPIC_SETTINGS = {"index.interval.bytes": "500", "segment.ms": "10000"}
QUEUE = "dlq.orders"
GROUP_SETTINGS = {
    "share.record.lock.duration.ms": "1000",
    "share.delivery.count.limit": "10",
    "errors.deadletterqueue.topic.name": QUEUE,
    "errors.deadletterqueue.copy.record.enable": "true",
}

# Kafka reads its metadata and its logs after it has answered the first requests.
KAFKAS_ERRORS = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


@pytest.fixture(params=["cold"] if against_apache_kafka() else ["cold", "damaged"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """Apache Kafka is as it is: of its disk nothing is known."""
    if reason := why_no_broker():
        pytest.skip(reason)
    is_damaged = request.param == "damaged"
    broker = (
        make_broker(tmp_path, SETTINGS)
        if against_apache_kafka()
        else ColdBroker(tmp_path, SETTINGS, prefix=TOPIC, seed=SEED, is_damaged=is_damaged)
    )
    try:
        yield broker.start()
        assert broker.crashes_in_log() == [], broker.log_text()
    finally:
        broker.stop()


def value_of(partition: int, offset: int) -> bytes:
    return b"%d of %d" % (offset, partition)


class Source:
    """Writes the records."""

    def __init__(self, broker: BrokerProcess, chance: random.Random) -> None:
        self.ends = [0] * PARTITIONS
        self._broker = broker
        self._chance = chance

    def write(self) -> None:
        """Write some batches to each partition."""
        with WireClient(self._broker.port) as client:
            for _ in range(BATCHES):
                left: Sequence[int] = range(PARTITIONS)
                while left:
                    left = self._write_one(client, left)

    def _write_one(self, client: WireClient, partitions: Sequence[int]) -> list[int]:
        """Write a batch to each of these partitions. Returns those that have refused it."""
        counts = {partition: self._chance.randint(1, 12) for partition in partitions}
        data = [
            ProducePartitionData(index=partition, records=self._batch(partition, count))
            for partition, count in counts.items()
        ]
        topic = ProduceTopicData(name=TOPIC, partition_data=data)
        request = ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic])
        [answer] = client.ask(request, ProduceResponse, BY_NAME).responses
        refused = []
        for each in answer.partition_responses:
            if each.error_code:
                assert against_apache_kafka(), each
                refused.append(each.index)
            else:
                self.ends[each.index] += counts[each.index]
        return refused

    def _batch(self, partition: int, count: int) -> bytes:
        start = self.ends[partition]
        values = (value_of(partition, start + number).decode() for number in range(count))
        compression = self._chance.choice([CompressionType.NONE, CompressionType.LZ4])
        return bytes(batch_of(*values, compression=compression))


def progress(broker: BrokerProcess) -> list[DescribeShareGroupOffsetsResponsePartition]:
    """Where the group is in each partition."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=None)
    request = DescribeShareGroupOffsetsRequest(groups=[asked])
    with WireClient(broker.port) as client:
        [group] = client.ask(request, DescribeShareGroupOffsetsResponse, 1).groups
    found = [each for topic in group.topics for each in topic.partitions]
    return sorted(found, key=lambda each: each.partition_index)


def lags(broker: BrokerProcess) -> list[int]:
    return [each.lag for each in progress(broker)]


def queued(broker: BrokerProcess) -> set[Place]:
    """The records that are in the dead-letter queue."""
    found: set[Place] = set()
    for partition in range(PARTITIONS):
        offset = 0
        with WireClient(broker.port) as client:
            while data := fetch(client, QUEUE, partition, offset):
                for batch in each_batch(data):
                    offset = read_header(batch).next_offset
                    found |= {place_of(record) for record in read_records(batch)}
    return found


def place_of(record: Record) -> Place:
    """The record that a record of the queue is about; its value is that one's, if it has one."""
    headers = dict(record.headers)
    partition = int(headers["__dlq.errors.partition"] or b"")
    offset = int(headers["__dlq.errors.offset"] or b"")
    assert record.value in (None, value_of(partition, offset))
    return partition, offset


def wait_for_last(broker: BrokerProcess, settled: Settled) -> None:
    """Return when all records are settled; fails if none is for a minute."""
    while not settled.faults and (left := lags(broker)) != [0] * PARTITIONS:
        wait_until(lambda: settled.faults or lags(broker) != left)


def test_every_record_is_settled_once_through_kills(broker: BrokerProcess) -> None:
    chance = random.Random(SEED)
    settled = Settled(LOCK_SECONDS)
    create_topic(broker.bootstrap, TOPIC, PARTITIONS, TOPIC_SETTINGS)
    allows = {"errors.deadletterqueue.group.enable": "true"}
    create_topic(broker.bootstrap, QUEUE, PARTITIONS, allows)
    with WireClient(broker.port) as client:
        topic_id = prepare_group(client, GROUP, TOPIC, **GROUP_SETTINGS)
        joined(client, GROUP, "first", TOPIC, topic_id, PARTITIONS)
    errors = KAFKAS_ERRORS if against_apache_kafka() else set()
    if isinstance(broker, ColdBroker) and broker.is_damaged:
        errors = {ErrorCode.CORRUPT_MESSAGE}
    group = Group(broker.port, GROUP, TOPIC, topic_id, PARTITIONS, value_of, errors)
    source = Source(broker, chance)
    sharers = [
        Sharer(group, f"member {number}", settled, random.Random(SEED + number))
        for number in range(MEMBERS)
    ]
    source.write()
    for sharer in sharers:
        sharer.start()
    try:
        for _ in range(ROUNDS):
            source.write()
            time.sleep(chance.uniform(*LIFE_SECONDS))
            broker.kill()
            settled.life += 1
            broker.start()
        for sharer in sharers:
            sharer.is_hurried = True
        wait_for_last(broker, settled)
        ends = list(source.ends)
        broker.kill()
        settled.life += 1
        broker.start()
        # A start offset is stored with the acknowledgements that follow.
        source.write()
        wait_for_last(broker, settled)
    finally:
        for sharer in sharers:
            sharer.stop()
    assert not settled.faults, "\n".join(settled.faults[:20])
    assert settled.missing(source.ends) == []
    assert settled.rejected
    assert settled.rejected <= queued(broker)
    starts = [each.start_offset for each in progress(broker)]
    assert all(start >= end for start, end in zip(starts, ends, strict=True)), (starts, ends)
