"""Real input: a million records of 1 KiB by the producer's defaults, read back by two clients."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.conformance.clients import CLIENTS
from tests.conformance.group_watch import Group
from tests.conformance.member_kinds import KAFKA_PYTHON
from tests.support.broker_process import BrokerProcess
from tests.support.java_tools import JavaTools
from tests.support.lengths import by_length, only_long
from tests.support.stored_batches import stored_batches
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, only_long("fewer records are read by the same clients elsewhere")]

PARTITIONS = 6
RECORDS = by_length(100_000, 1_000_000)
TOPIC = "many-records"


@pytest.fixture(scope="module")
def ends(broker: BrokerProcess, java: JavaTools) -> dict[int, int]:
    """The records are written; how many each partition got."""
    create_topic(broker.bootstrap, TOPIC, PARTITIONS)
    server = ("--bootstrap-server", broker.bootstrap, "--topic", TOPIC)
    volume = ("--num-records", str(RECORDS), "--record-size", "1024", "--throughput", "-1")
    output = java.run("ProducerPerformance", *server, *volume, limit_s=300)
    assert re.search(rf"^{RECORDS} records sent, .* 99.9th", output, re.MULTILINE), output
    rows = re.findall(rf"^{TOPIC}:(\d+):(\d+)$", java.run("GetOffsetShell", *server), re.MULTILINE)
    return {int(partition): int(end) for partition, end in rows}


def test_the_partitions_hold_as_many_records_as_were_sent(ends: dict[int, int]) -> None:
    assert len(ends) == PARTITIONS
    assert sum(ends.values()) == RECORDS


def test_the_batches_are_in_the_producers_order_without_a_gap(
    broker: BrokerProcess, ends: dict[int, int]
) -> None:
    for partition, end in ends.items():
        offset = sequence = 0
        for batch in stored_batches(broker.port, TOPIC, partition):
            assert batch.producer_id >= 0
            assert (batch.base_offset, batch.base_sequence) == (offset, sequence)
            offset += batch.record_count
            sequence += batch.record_count
        assert offset == end


def test_consumer_perf_reads_all_of_them(
    broker: BrokerProcess, java: JavaTools, ends: dict[int, int]
) -> None:
    row = java.run(
        "ConsumerPerformance",
        *("--bootstrap-server", broker.bootstrap, "--topic", TOPIC),
        *("--num-records", str(RECORDS), "--timeout", "60000", "--hide-header"),
        limit_s=300,
    )
    assert re.search(rf", {RECORDS}, ", row), row


def test_a_group_of_three_reads_each_once_and_in_order(
    broker: BrokerProcess, ends: dict[int, int], tmp_path: Path
) -> None:
    with Group(KAFKA_PYTHON, broker.bootstrap, TOPIC, "many-readers", tmp_path) as group:
        for _ in range(3):
            group.add()
        group.wait_until(
            lambda: sum(member.records_read for member in group.members) >= RECORDS,
            "everything read",
            patience_s=300,
        )
        group.leave()
        group.assert_sound({(TOPIC, partition): end for partition, end in ends.items()})


def test_values_come_back_in_the_order_they_were_sent(
    broker: BrokerProcess, java: JavaTools, topic: str
) -> None:
    count = RECORDS // 5
    create_topic(broker.bootstrap, topic, PARTITIONS)
    java.run(
        "ProducerPerformance",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--payload-monotonic"),
        *("--num-records", str(count), "--throughput", "-1"),
    )
    reader = CLIENTS["confluent-kafka"].reader(broker.bootstrap, topic, range(PARTITIONS))
    values: defaultdict[int, list[int]] = defaultdict(list)
    for record in reader.read(count):
        assert record.value is not None
        assert record.offset == len(values[record.partition])
        values[record.partition].append(int(record.value))
    reader.close()
    assert all(found == sorted(found) for found in values.values())
    assert sorted(value for found in values.values() for value in found) == list(range(count))
