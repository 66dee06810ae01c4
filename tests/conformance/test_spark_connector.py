"""Spark's own Kafka connector: what it reads and writes through the broker, in batches and streams.

What is read is compared with what librdkafka wrote, and what is written with what it reads.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.conformance import spark_jobs as jobs
from tests.conformance.clients.client import CODECS, Got, Sent
from tests.conformance.clients.confluent_client import ConfluentKafka
from tests.conformance.spark_jobs import Row, Written
from tests.support.broker_process import BrokerProcess
from tests.support.lengths import by_length
from tests.support.quick_spark import quick_java_options
from tests.support.spark_process import SparkProcess, why_no_connector
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow]

START_MS = 1_700_000_000_000
SECOND_MS = 1000
LATEST, EARLIEST = -1, -2
CREATE_TIME = 0


@pytest.fixture(scope="module")
def connector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkProcess]:
    """One Spark for all tests here."""
    reason = why_no_connector()
    if reason:
        pytest.skip(reason)
    conf = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": quick_java_options()}
    with SparkProcess(tmp_path_factory.mktemp("connector"), conf) as process:
        yield process


@pytest.fixture(scope="module")
def numbered(broker: BrokerProcess) -> str:
    """A topic with ten records in each of two partitions, one second apart."""
    create_topic(broker.bootstrap, "numbered", 2)
    produce(broker, "numbered", [*ten(0), *ten(1)])
    return "numbered"


def ten(partition: int, first: int = 0) -> list[Sent]:
    return [
        Sent(b"%d-%d" % (partition, n), b"k%d" % n, partition, START_MS + n * SECOND_MS)
        for n in range(first, first + 10)
    ]


def produce(
    broker: BrokerProcess, topic: str, records: Sequence[Sent], codec: str = "none"
) -> list[int]:
    return ConfluentKafka().produce(broker.bootstrap, topic, records, codec=codec)


def consume(broker: BrokerProcess, topic: str, partitions: Sequence[int], count: int) -> list[Got]:
    """All that librdkafka finds there, and that there is no more."""
    reader = ConfluentKafka().reader(broker.bootstrap, topic, partitions)
    try:
        got = sorted(reader.read(count))
        ends = [reader.beginning_and_end(each)[1] for each in partitions]
    finally:
        reader.close()
    assert sum(ends) == count
    return got


def of(broker: BrokerProcess, topic: str, **options: str) -> dict[str, str]:
    """Options that read a topic."""
    return {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": topic, **options}


def into(broker: BrokerProcess, topic: str) -> dict[str, str]:
    """Options that write a topic."""
    return {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic}


def as_got(rows: Sequence[Row]) -> list[Got]:
    return [
        Got(row.partition, row.offset, row.key, row.value, row.timestamp_ms, row.headers)
        for row in rows
    ]


def places(rows: Sequence[Row]) -> dict[int, list[int]]:
    """The offsets of each partition."""
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(row.partition, []).append(row.offset)
    return found


# -- batches are read ---------------------------------------------------------------------------


def test_every_field_of_a_record_is_read(
    connector: SparkProcess, broker: BrokerProcess, three_partitions: str
) -> None:
    kinds = (
        Sent(b"plain"),
        Sent(None, b"tombstone"),
        Sent(b"", b""),
        Sent("Käfka ☕".encode(), "ключ".encode()),
        Sent(b"h", headers=(("a", b"1"), ("a", b"2"), ("empty", b""), ("ü", b"\xff\x00"))),
        Sent(bytes(range(256)) * 400, b"binary"),
    )
    sent = []
    for codec in CODECS:
        written = [
            each._replace(partition=partition, timestamp_ms=START_MS + n)
            for partition in range(3)
            for n, each in enumerate(kinds)
        ]
        produce(broker, three_partitions, written, codec)
        sent += written
    rows = connector.do(jobs.read, of(broker, three_partitions))
    assert as_got(rows) == consume(broker, three_partitions, [0, 1, 2], len(sent))
    assert [row.as_sent() for row in as_got(rows)] == sorted(sent, key=lambda one: one.partition)
    assert {row.timestamp_type for row in rows} == {CREATE_TIME}
    assert {row.topic for row in rows} == {three_partitions}


AT_3_S = str(START_MS + 3 * SECOND_MS)
AT_7_S = str(START_MS + 7 * SECOND_MS)
TOO_LATE = str(START_MS + 99 * SECOND_MS)


def by_partition(zero: int | str, one: int | str) -> str:
    return json.dumps({"numbered": {"0": int(zero), "1": int(one)}})


RANGES: dict[str, tuple[dict[str, str], list[tuple[int, int]]]] = {
    "all": ({"startingOffsets": "earliest", "endingOffsets": "latest"}, [(0, 10), (0, 10)]),
    "offsets": (
        {"startingOffsets": by_partition(4, EARLIEST), "endingOffsets": by_partition(9, 1)},
        [(4, 9), (0, 1)],
    ),
    "ends": (
        {"startingOffsets": by_partition(10, 3), "endingOffsets": by_partition(LATEST, LATEST)},
        [(10, 10), (3, 10)],
    ),
    "timestamps": ({"startingTimestamp": AT_3_S, "endingTimestamp": AT_7_S}, [(3, 7), (3, 7)]),
    "by-timestamp": (
        {
            "startingOffsetsByTimestamp": by_partition(AT_7_S, 0),
            "endingOffsetsByTimestamp": by_partition(TOO_LATE, AT_3_S),
        },
        [(7, 10), (0, 3)],
    ),
    "too-late": (
        {"startingTimestamp": TOO_LATE, "startingOffsetsByTimestampStrategy": "latest"},
        [(10, 10), (10, 10)],
    ),
}


@pytest.mark.parametrize("name", by_length(["by-timestamp"], list(RANGES)))
def test_a_range_can_be_chosen(
    name: str, connector: SparkProcess, broker: BrokerProcess, numbered: str
) -> None:
    options, expected = RANGES[name]
    rows = connector.do(jobs.read, of(broker, numbered, **options))
    assert places(rows) == {
        partition: list(range(start, end))
        for partition, (start, end) in enumerate(expected)
        if start < end
    }


# -- batches are written ------------------------------------------------------------------------


def test_every_field_of_a_record_is_written(
    connector: SparkProcess, broker: BrokerProcess, three_partitions: str
) -> None:
    records = [
        Written(b"key", b"value", 0),
        Written(None, b"no key", 1),
        Written(b"tombstone", None, 1),
        Written(b"", b"", 2, (("a", b"1"), ("a", b"2"), ("empty", b""), ("none", None))),
        Written("ключ".encode(), "Käfka ☕".encode(), 2, (("ü", b"\xff\x00"),)),
    ]
    connector.do(jobs.write, records, into(broker, three_partitions))
    got = consume(broker, three_partitions, [0, 1, 2], len(records))
    found = {(each.key, each.value, each.partition, each.headers) for each in got}
    assert found == {(*each[:3], each.headers or ()) for each in records}


# -- streams ------------------------------------------------------------------------------------


def test_a_stream_goes_on_where_its_checkpoint_ends_whatever_happened_to_the_broker(
    connector: SparkProcess,
    start_broker: Callable[..., BrokerProcess],
    topic: str,
    tmp_path: Path,
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic, 2)
    wanted = of(broker, topic, startingOffsets="earliest", maxOffsetsPerTrigger="8")
    produce(broker, topic, [*ten(0), *ten(1)])
    batches = connector.do(jobs.stream, wanted, tmp_path / "checkpoint")
    assert [len(batch) for batch in batches] == [8, 8, 4]
    produce(broker, topic, [*ten(0, 10), *ten(1, 10)])
    broker.kill()
    broker.start()
    batches += connector.do(jobs.stream, wanted, tmp_path / "checkpoint")
    assert connector.do(jobs.stream, wanted, tmp_path / "checkpoint") == []
    rows = sorted(row for batch in batches for row in batch)
    assert as_got(rows) == consume(broker, topic, [0, 1], 40)
    assert max(map(len, batches)) == 8
