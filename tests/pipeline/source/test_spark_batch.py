"""spark.read.format("odradek"), against what a consumer of the same topic gets."""

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from odradek.pipeline import register
from odradek.storage.log import PartitionLog
from tests.support.broker_process import BrokerProcess
from tests.support.dirty_logs import end_transaction
from tests.support.lengths import by_length, only_long
from tests.support.log_box import NOW_MS, LogBox, batch_of, put
from tests.support.topics import create_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

TOPIC = "every.kind-of_record"
PARTITIONS = 4  # the last one stays empty
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LIMIT_SECONDS = 60.0

Row = tuple[Any, ...]


@pytest.fixture(scope="module")
def written(broker: BrokerProcess) -> list[Row]:
    """What a consumer reads of a topic in which there is everything, by partition and offset."""
    small = {"internal.segment.bytes": "20000", "index.interval.bytes": "1000"}
    create_topic(broker.bootstrap, TOPIC, PARTITIONS, small)
    rng = random.Random(7)
    for codec in CODECS:
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "compression.type": codec,
                "enable.idempotence": codec in ("lz4", "none"),
                "linger.ms": 50,
            }
        )
        for number in range(300):
            produce(producer, rng, f"{codec} {number} ".encode())
        assert producer.flush(LIMIT_SECONDS) == 0
    return consumed(broker, TOPIC, range(PARTITIONS))


def produce(producer: Producer, rng: random.Random, value: bytes) -> None:
    headers: list[tuple[str, bytes | None]] = [("größe", b"\xff"), ("", None), ("größe", b"")]
    producer.produce(
        TOPIC,
        value=rng.choice([None, b"", value, value + rng.randbytes(200)]),
        key=rng.choice([None, b"", value[:6]]),
        partition=rng.randrange(PARTITIONS - 1),
        timestamp=NOW_MS + rng.randrange(10**6),
        headers=headers[: rng.randrange(4)],
    )


def consumed(broker: BrokerProcess, topic: str, partitions: range) -> list[Row]:
    """Everything that is there, as rows of the source with headers."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "reference",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    rows, at_end = [], 0
    deadline = time.monotonic() + LIMIT_SECONDS
    while at_end < len(partitions):
        assert time.monotonic() < deadline
        for message in consumer.consume(1000, 0.2):
            if message.error() is None:
                rows.append(row_of(message))
            else:
                at_end += 1
    consumer.close()
    return sorted(rows, key=lambda row: row[3:5])


def row_of(message: Message) -> Row:
    kind, stamp_ms = message.timestamp()
    headers = [tuple(header) for header in message.headers() or ()] or None
    return (
        message.key(),
        message.value(),
        message.topic(),
        message.partition(),
        message.offset(),
        stamp_ms,
        kind - 1,
        headers,
    )


def rows_of(frame: "DataFrame") -> list[Row]:
    rows = [
        (
            *row[:5],
            round(row.timestamp.timestamp() * 1000),
            row.timestampType,
            None if row.headers is None else [tuple(header) for header in row.headers],
        )
        for row in frame.collect()
    ]
    return sorted(rows, key=lambda row: row[3:5])


Read = Callable[..., "DataFrameReader"]


@pytest.fixture
def read(spark: "SparkSession", broker: BrokerProcess, written: list[Row]) -> Read:
    """A reader of the topic, from files by default."""

    def reader(**options: str) -> "DataFrameReader":
        where = {"path": str(broker.data), "kafka.bootstrap.servers": broker.bootstrap}
        return spark.read.format("odradek").options(**where, subscribe=TOPIC).options(**options)

    return reader


@contextlib.contextmanager
def with_setting(spark: "SparkSession", name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, "false")
    spark.conf.set(name, value)
    yield
    spark.conf.set(name, before)


@pytest.mark.parametrize("mode", ["files", "broker"])
def test_every_record_is_as_a_consumer_gets_it(read: Read, written: list[Row], mode: str) -> None:
    more = {"maxSplitBytes": "4k"} if mode == "files" else {"minPartitions": "7"}
    frame = read(mode=mode, includeHeaders="true", **more).load()
    assert frame.rdd.getNumPartitions() >= 7
    assert rows_of(frame) == written


@pytest.mark.parametrize("pushdown", by_length(["true"], ["false", "true"]))
def test_a_frame_does_not_keep_the_filters_of_its_previous_query(
    spark: "SparkSession", read: Read, written: list[Row], pushdown: str
) -> None:
    with with_setting(spark, "spark.sql.python.filterPushdown.enabled", pushdown):
        frame = read().load()
        some = [row for row in written if row[3] == 1]
        assert frame.where("partition = 1").count() == len(some) < len(written)
        assert frame.count() == len(written)
        both = frame.where("partition = 0").union(frame.where("partition = 1"))
        assert both.count() == sum(row[3] in (0, 1) for row in written)


def test_random_queries_that_reuse_frames_find_the_rows_that_python_finds(
    read: Read, written: list[Row]
) -> None:
    """Each query filters a frame of an earlier one, or unites two, and reads some columns."""
    rng = random.Random(11)
    made = [
        (read(mode=mode, includeHeaders="true").load(), written) for mode in ("files", "broker")
    ]
    for _ in range(by_length(4, 16)):
        frame, rows = rng.choice(made)
        if rng.random() < 0.3:
            other, more = rng.choice(made)
            frame, rows = frame.union(other), rows + more
        else:
            condition, is_true = random_condition(rng)
            frame, rows = frame.where(condition), [row for row in rows if is_true(row)]
        if len(rows) < 4 * len(written):
            made.append((frame, rows))
        columns = rng.sample(range(len(COLUMNS)), rng.randint(1, len(COLUMNS)))
        found = frame.selectExpr(*(COLUMNS[number] for number in columns)).collect()
        expected = [tuple(row[number] for number in columns) for row in rows]
        assert sorted(map(plain, found), key=repr) == sorted(expected, key=repr)


COLUMNS = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "unix_millis(timestamp)",
    "timestampType",
    "headers",
)


def plain(row: tuple[Any, ...]) -> Row:
    """A row of Spark as those of `row_of`. Bytes of Spark 4.0 are bytearrays."""
    return tuple(
        bytes(cell)
        if isinstance(cell, bytearray)
        else [plain(header) for header in cell]
        if isinstance(cell, list)
        else cell
        for cell in row
    )


def random_condition(rng: random.Random) -> tuple[str, Callable[[Row], bool]]:
    """A condition in SQL, and the same in Python."""
    offset, stamp_ms = rng.randrange(400), NOW_MS + rng.randrange(10**6)
    parts = rng.sample(range(PARTITIONS), 2)
    return rng.choice(
        [
            (f"partition = {parts[0]}", lambda row: row[3] == parts[0]),
            (f"partition in ({parts[0]}, {parts[1]})", lambda row: row[3] in parts),
            (f"topic = '{TOPIC}'", lambda _: True),
            ("topic like 'every%' and topic != 'other'", lambda _: True),
            (f"offset >= {offset}", lambda row: row[4] >= offset),
            (
                f"not (offset < {offset} or partition = {parts[0]})",
                lambda row: row[4] >= offset and row[3] != parts[0],
            ),
            (f"timestamp >= '{spark_time(stamp_ms)}'", lambda row: row[5] >= stamp_ms),
            (f"timestamp < '{spark_time(stamp_ms)}'", lambda row: row[5] < stamp_ms),
            ("key is not null", lambda row: row[0] is not None),
            ("value is null or offset % 2 = 0", lambda row: row[1] is None or row[4] % 2 == 0),
        ]
    )


def spark_time(stamp_ms: int) -> str:
    seconds, ms = divmod(stamp_ms, 1000)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{ms:03}Z"


def test_two_sessions_of_a_program_register_the_data_source(
    spark: "SparkSession", broker: BrokerProcess, written: list[Row]
) -> None:
    other = spark.newSession()
    for each in (other, spark):
        register(each)
        options = {"path": str(broker.data), "subscribe": TOPIC}
        assert each.read.format("odradek").options(**options).load().count() == len(written)


def test_a_schema_chooses_the_columns(read: Read, written: list[Row]) -> None:
    frame = read().schema("offset bigint not null, value binary, partition int").load()
    rows = {(row.partition, row.offset): row.value for row in frame.collect()}
    assert rows == {(row[3], row[4]): row[1] for row in written}
    assert frame.columns == ["offset", "value", "partition"]


def test_nothing_to_read_is_no_rows(read: Read) -> None:
    assert read().load().where("partition = 77").count() == 0
    assert (
        read(
            startingOffsets='{"every.kind-of_record":{"0":-2,"1":-2,"2":-2,"3":-2}}',
            endingTimestamp="0",
        )
        .load()
        .collect()
        == []
    )


def test_batches_have_rows_of_their_own(read: Read, written: list[Row]) -> None:
    frame = read(view="batches", minPartitions="50").load()
    rows = frame.selectExpr("recordCount", "codec", "lastOffset - baseOffset + 1").collect()
    assert sum(row[0] for row in rows) == len(written)
    assert {row[1] for row in rows} == set(CODECS)
    assert all(row[0] == row[2] for row in rows)


@pytest.mark.parametrize(
    ("options", "schema", "says"),
    [
        ({"subscribe": "nobody"}, None, "not found: nobody"),
        *by_length(
            [],
            [
                ({"endingOffset": "latest"}, None, "Unknown option 'endingoffset'"),
                ({"startingOffsets": "latest"}, None, "starting offset can't be latest"),
                ({}, "value string", "Column 'value' is binary, not string"),
            ],
        ),
    ],
)
def test_invalid_options_are_errors(
    read: Read, options: dict[str, str], schema: str | None, says: str
) -> None:
    reader = read(**options) if schema is None else read(**options).schema(schema)
    with pytest.raises(Exception, match=says):
        reader.load().collect()


@only_long("committed records are read in test_range_reader.py")
def test_committed_records_end_before_an_open_transaction(
    spark: "SparkSession", tmp_path: Path
) -> None:
    log = LogBox(tmp_path, segment_bytes=2000).open()
    for number in range(40):
        write_transaction(log, number, commit=number % 2 == 0)
        put(log, b"plain %d" % number)
    log.append(
        batch_of(b"open", producer=(99, 0, 0), is_transactional=True),
        now_ms=NOW_MS,
        transaction_verified=True,
    )
    put(log, b"after it")
    reader = spark.read.format("odradek").options(path=str(tmp_path), subscribe="orders")
    committed = reader.options(**{"kafka.isolation.level": "read_committed"}).load()
    found = [row.value for row in committed.select("offset", "value").sort("offset").collect()]
    assert found == [
        value
        for number in range(40)
        for value in ([b"transaction %d" % number] * (number % 2 == 0) + [b"plain %d" % number])
    ]
    uncommitted = spark.read.format("odradek").options(path=str(tmp_path), subscribe="orders")
    assert uncommitted.load().count() == 82


def write_transaction(log: PartitionLog, number: int, *, commit: bool) -> None:
    batch = batch_of(b"transaction %d" % number, producer=(number, 0, 0), is_transactional=True)
    log.append(batch, now_ms=NOW_MS, transaction_verified=True)
    end_transaction(log, number, 0, commit=commit)
