"""Spark's own Kafka connector: what it reads and writes through the broker, in batches and streams.

What is read is compared with what librdkafka wrote, and what is written with what it reads.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from odradek.storage.log import PartitionLog
from tests.conformance import spark_jobs as jobs
from tests.conformance.clients.client import CODECS, Got, Sent
from tests.conformance.clients.confluent_client import ConfluentKafka
from tests.conformance.spark_jobs import Row, Written
from tests.support.broker_process import BrokerProcess
from tests.support.dirty_logs import end_transaction
from tests.support.lengths import by_length, only_long
from tests.support.log_box import NOW_MS, batch_of
from tests.support.partition_logs import open_log
from tests.support.quick_spark import quick_java_options
from tests.support.spark_process import SparkError, SparkProcess, why_no_connector
from tests.support.stored_batches import stored_batches
from tests.support.topics import create_topic, delete_topic, topic_partitions

pytestmark = [pytest.mark.java, pytest.mark.slow]

LIMIT_SECONDS = 30.0
START_MS = 1_700_000_000_000
SECOND_MS = 1000
LATEST, EARLIEST = -1, -2
CREATE_TIME, LOG_APPEND_TIME = 0, 1


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


@only_long("every field is read above")
def test_the_brokers_time_is_told_as_such(
    connector: SparkProcess, broker: BrokerProcess, topic: str
) -> None:
    create_topic(broker.bootstrap, topic, 1, {"message.timestamp.type": "LogAppendTime"})
    produce(broker, topic, ten(0))
    rows = connector.do(jobs.read, of(broker, topic))
    assert {row.timestamp_type for row in rows} == {LOG_APPEND_TIME}
    assert as_got(rows) == consume(broker, topic, [0], 10)


@only_long("every field of a record is read above")
def test_headers_are_a_column_when_they_are_asked_for(
    connector: SparkProcess, broker: BrokerProcess, numbered: str
) -> None:
    plain = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    asked = of(broker, numbered, includeHeaders="true")
    assert connector.do(jobs.columns, of(broker, numbered)) == plain
    assert connector.do(jobs.columns, asked) == [*plain, "headers"]


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


@only_long("ranges are chosen above")
def test_a_time_behind_the_last_record_is_an_error_without_a_strategy(
    connector: SparkProcess, broker: BrokerProcess, numbered: str
) -> None:
    with pytest.raises(SparkError, match="No offset matched"):
        connector.do(jobs.read, of(broker, numbered, startingTimestamp=TOO_LATE))


@only_long("ranges are chosen above")
def test_partitions_and_patterns_choose_too(
    connector: SparkProcess, broker: BrokerProcess, numbered: str
) -> None:
    server = {"kafka.bootstrap.servers": broker.bootstrap}
    assigned = connector.do(jobs.read, {**server, "assign": json.dumps({numbered: [1]})})
    assert places(assigned) == {1: list(range(10))}
    matched = connector.do(jobs.read, {**server, "subscribePattern": "^num.*ed$"})
    assert places(matched) == {0: list(range(10)), 1: list(range(10))}


@only_long("partitions are chosen above")
def test_partitions_are_split_among_tasks(
    connector: SparkProcess, broker: BrokerProcess, numbered: str
) -> None:
    split = of(broker, numbered, minPartitions="5")
    assert connector.do(jobs.partition_count, of(broker, numbered)) == 2
    assert connector.do(jobs.partition_count, split) >= 5
    assert places(connector.do(jobs.read, split)) == {0: list(range(10)), 1: list(range(10))}


@only_long("ranges are chosen above")
def test_the_deprecated_way_to_ask_for_offsets_works(
    connector: SparkProcess, broker: BrokerProcess, numbered: str
) -> None:
    """It joins a consumer group on the driver, and asks and seeks as a member."""
    setting = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
    connector.do(jobs.set_conf, setting, "true")
    try:
        rows = connector.do(
            jobs.read, of(broker, numbered, startingTimestamp=AT_3_S, endingOffsets="latest")
        )
    finally:
        connector.do(jobs.set_conf, setting, "false")
    assert places(rows) == {0: list(range(3, 10)), 1: list(range(3, 10))}


@only_long("what a fetch answers there is in test_same_answers.py")
def test_deleted_records_are_missed_unless_that_is_allowed(
    connector: SparkProcess, broker: BrokerProcess, topic: str
) -> None:
    create_topic(broker.bootstrap, topic)
    produce(broker, topic, ten(0))
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    [answer] = admin.delete_records([TopicPartition(topic, 0, 4)]).values()
    assert answer.result(LIMIT_SECONDS).low_watermark == 4
    wanted = of(broker, topic, startingOffsets=json.dumps({topic: {"0": 2}}))
    with pytest.raises(SparkError, match="Some data may have been lost"):
        connector.do(jobs.read, wanted)
    rows = connector.do(jobs.read, {**wanted, "failOnDataLoss": "false"})
    assert places(rows) == {0: list(range(4, 10))}


@only_long("read_committed is tested with other clients")
def test_committed_records_alone_are_read_when_that_is_asked(
    connector: SparkProcess, start_broker: Callable[..., BrokerProcess], topic: str
) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic)
    broker.terminate()
    lay_down_transactions(open_log(broker.data, topic))
    (broker.data / ".kafka_cleanshutdown").unlink()
    broker.start()
    everything = connector.do(jobs.read, of(broker, topic))
    assert places(everything) == {0: [0, 1, 2, 4, 5, 7, 8]}
    committed = {"kafka.isolation.level": "read_committed"}
    rows = connector.do(jobs.read, of(broker, topic, **committed))
    assert [(row.offset, row.value) for row in rows] == [(0, b"0"), (2, b"2"), (4, b"4"), (5, b"5")]


def lay_down_transactions(log: PartitionLog) -> None:
    """0 plain, 1 aborted by 3, 2 plain, 4 plain, 5 committed by 6, 7 open, 8 plain behind it."""
    sequences = {7: 0, 8: 0}

    def plain(value: bytes) -> None:
        log.append(batch_of(value), now_ms=NOW_MS)

    def transactional(producer: int, value: bytes) -> None:
        batch = batch_of(value, producer=(producer, 0, sequences[producer]), is_transactional=True)
        sequences[producer] += 1
        log.append(batch, now_ms=NOW_MS, transaction_verified=True)

    plain(b"0")
    transactional(7, b"1")
    plain(b"2")
    end_transaction(log, 7, 0, commit=False)
    plain(b"4")
    transactional(8, b"5")
    end_transaction(log, 8, 0, commit=True)
    transactional(7, b"7")
    plain(b"8")
    log.close(NOW_MS)


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


@only_long("every field is written above")
def test_rows_name_their_topics_and_options_reach_the_producer(
    connector: SparkProcess, broker: BrokerProcess, topic: str
) -> None:
    topics = [f"{topic}-{n}" for n in range(3)]
    for each in topics:
        create_topic(broker.bootstrap, each)
    options = into(broker, "") | {"kafka.compression.type": "zstd", "kafka.linger.ms": "20"}
    del options["topic"]
    connector.do(jobs.write_numbers, options, 900, topics)
    for number, each in enumerate(topics):
        values = [int(got.value or b"") for got in consume(broker, each, [0], 300)]
        assert sorted(values) == list(range(number, 900, 3))
        assert {batch.codec for batch in stored_batches(broker.port, each)} == {"zstd"}


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


@only_long("a stream goes on above")
def test_a_running_stream_finds_new_records_partitions_and_topics(
    connector: SparkProcess, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    first, second = f"{topic}-a", f"{topic}-b"
    create_topic(broker.bootstrap, first)
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribePattern": f"{topic}-.*",
        "startingOffsets": "earliest",
        "kafka.metadata.max.age.ms": "200",
    }
    connector.do(jobs.start, options, tmp_path / "checkpoint")
    produce(broker, first, ten(0))
    connector.do(jobs.seen, 10)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_partitions([NewPartitions(first, 2)])[first].result(LIMIT_SECONDS)
    create_topic(broker.bootstrap, second)
    produce(broker, first, ten(1))
    produce(broker, second, ten(0))
    rows = connector.do(jobs.seen, 30)
    connector.do(jobs.stop)
    found = [(row.topic, row.partition, row.offset) for row in sorted(rows)]
    places = [(first, 0), (first, 1), (second, 0)]
    assert found == [(*place, offset) for place in places for offset in range(10)]


@only_long("a stream goes on above")
def test_a_stream_ends_when_its_topic_was_deleted_and_made_again(
    connector: SparkProcess, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    wanted = of(broker, topic, startingOffsets="earliest")
    create_topic(broker.bootstrap, topic)
    produce(broker, topic, ten(0))
    assert len(connector.do(jobs.stream, wanted, tmp_path / "checkpoint")[0]) == 10
    delete_topic(broker.bootstrap, topic)
    await_gone(broker, topic)
    create_topic(broker.bootstrap, topic)
    produce(broker, topic, ten(0)[:3])
    with pytest.raises(SparkError, match="offset was changed from 10 to 3"):
        connector.do(jobs.stream, wanted, tmp_path / "checkpoint")


def await_gone(broker: BrokerProcess, topic: str) -> None:
    deadline = time.monotonic() + LIMIT_SECONDS
    while topic in topic_partitions(broker.bootstrap):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@only_long("a stream goes on above, and rows are written above")
def test_a_stream_writes_what_it_reads(
    connector: SparkProcess, broker: BrokerProcess, three_partitions: str, tmp_path: Path
) -> None:
    copied = f"{three_partitions}-copy"
    create_topic(broker.bootstrap, copied)
    source = of(broker, three_partitions, startingOffsets="earliest")
    sent = []
    for first in (0, 10):
        records = [
            each._replace(headers=(("n", each.key),))
            for part in range(3)
            for each in ten(part, first)
        ]
        sent += records
        produce(broker, three_partitions, records)
        connector.do(jobs.copy, source, into(broker, copied), tmp_path / "checkpoint")
    got = consume(broker, copied, [0], len(sent))
    assert sorted((each.key, each.value, each.headers) for each in got) == sorted(
        (each.key, each.value, each.headers) for each in sent
    )


@only_long("a stream goes on above")
def test_the_continuous_mode_copies_too(
    connector: SparkProcess, broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    copied = f"{topic}-copy"
    create_topic(broker.bootstrap, topic)
    create_topic(broker.bootstrap, copied)
    produce(broker, topic, ten(0))
    source = of(broker, topic, startingOffsets="earliest")
    connector.do(jobs.start_copying, source, into(broker, copied), tmp_path / "checkpoint")
    got = consume(broker, copied, [0], 10)
    connector.do(jobs.stop_copying)
    assert [each.value for each in got] == [each.value for each in ten(0)]
