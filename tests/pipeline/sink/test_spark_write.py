"""df.write and df.writeStream to odradek: exactly once, each task in a transaction."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from pyspark import TaskContext

from tests.conformance.clients.client import Got
from tests.conformance.clients.confluent_client import ConfluentKafka
from tests.support.broker_process import BrokerProcess
from tests.support.committed import committed_values
from tests.support.lengths import by_length, only_long
from tests.support.topics import create_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

LIMIT_SECONDS = 60.0
SCHEMA = (
    "key string, value string, topic string, partition int, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)


@pytest.fixture
def made(spark: "SparkSession", broker: BrokerProcess, topic: str) -> "DataFrame":
    """Ten rows for two partitions of a new topic."""
    create_topic(broker.bootstrap, topic, 2)
    rows = [
        (f"k{number}", f"v{number}", topic, number % 2, None, [("n", b"%d" % number)])
        for number in range(10)
    ]
    return spark.createDataFrame(rows, SCHEMA).coalesce(1)


def consume(broker: BrokerProcess, topic: str, count: int, transactions: int = 1) -> list[Got]:
    """The records. Each transaction leaves a marker in both partitions."""
    reader = ConfluentKafka().reader(broker.bootstrap, topic, [0, 1])
    try:
        got = sorted(reader.read(count))
        ends = sum(reader.beginning_and_end(each)[1] for each in (0, 1))
        assert ends == count + 2 * transactions
    finally:
        reader.close()
    return got


def test_rows_are_written_with_all_that_they_have(
    made: "DataFrame", broker: BrokerProcess, topic: str
) -> None:
    writer = made.write.format("odradek").mode("append")
    writer.option("kafka.bootstrap.servers", broker.bootstrap).save()
    got = consume(broker, topic, 10)
    assert [(each.partition, each.offset) for each in got] == [
        (partition, offset) for partition in (0, 1) for offset in range(5)
    ]
    numbers = [*range(0, 10, 2), *range(1, 10, 2)]
    assert [(each.key, each.value, each.headers) for each in got] == [
        (b"k%d" % number, b"v%d" % number, (("n", b"%d" % number),)) for number in numbers
    ]


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        ("overwrite", {}, "overwrite is not allowed"),
        *by_length(
            [],
            [
                ("append", {"topics": "x"}, "Unknown option 'topics' for writing"),
                ("append", {"includeTimestamp": "true"}, "requires a column 'timestamp'"),
            ],
        ),
    ],
)
def test_rows_that_cannot_be_written_are_an_error(
    spark: "SparkSession",
    broker: BrokerProcess,
    topic: str,
    mode: str,
    options: dict[str, str],
    said: str,
) -> None:
    create_topic(broker.bootstrap, topic, 2)
    writer = spark.sql("select 'a' as value").write.format("odradek").mode(mode)
    to = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic}
    with pytest.raises(Exception, match=said):
        writer.options(**to, **options).save()
    assert consume(broker, topic, 0, transactions=0) == []


def test_a_stream_goes_from_topic_to_topic(
    spark: "SparkSession", made: "DataFrame", broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    at = {"kafka.bootstrap.servers": broker.bootstrap}
    copy = f"{topic}-copy"
    create_topic(broker.bootstrap, copy, 2)
    for total in by_length((10,), (10, 20, 30)):
        made.write.format("odradek").mode("append").options(**at).save()
        source = spark.readStream.format("odradek").options(**at, path=str(broker.data))
        rows = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
        query = (
            rows.select("key", "value", "partition", "timestamp")
            .writeStream.format("odradek")
            .options(**at, topic=copy, includeTimestamp="true")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(LIMIT_SECONDS)
        written = consume(broker, topic, total, total // 10)
        wanted = [each._replace(headers=()) for each in written]
        assert consume(broker, copy, total, total // 10) == wanted


@only_long("tasks that run again are in test_division.py")
def test_a_batch_that_foreach_batch_writes_again_is_written_once(
    spark: "SparkSession", made: "DataFrame", broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    at = {"kafka.bootstrap.servers": broker.bootstrap}
    copy = f"{topic}-copy"
    create_topic(broker.bootstrap, copy, 2)
    made.write.format("odradek").mode("append").options(**at).save()

    def write(rows: "DataFrame", batch_id: int) -> None:
        named = {"txnAppId": copy, "txnVersion": str(batch_id), "topic": copy}
        for selected in (rows, rows):
            selected.write.format("odradek").mode("append").options(**at, **named).save()
        fewer = rows.where("value <> 'v3'")
        with pytest.raises(Exception, match="which are not the same"):
            fewer.write.format("odradek").mode("append").options(**at, **named).save()

    source = spark.readStream.format("odradek").options(**at, path=str(broker.data))
    rows = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
    query = (
        rows.select("key", "value", "partition")
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(LIMIT_SECONDS)
    assert [each.value for each in consume(broker, copy, 10)] == [
        each.value for each in consume(broker, topic, 10)
    ]


@only_long("tasks that run again are in test_division.py")
def test_a_batch_that_failed_goes_on_if_it_is_divided_as_before(
    spark: "SparkSession", made: "DataFrame", broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    at = {"kafka.bootstrap.servers": broker.bootstrap}
    copy, fails = f"{topic}-copy", tmp_path / "fails"
    create_topic(broker.bootstrap, copy, 2)
    made.write.format("odradek").mode("append").options(**at).save()

    def first_task_fails(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        from confluent_kafka import Consumer, TopicPartition  # these cannot be pickled

        yield from batches
        if TaskContext.get().partitionId() == 0 and fails.exists():
            consumer = Consumer(
                {"bootstrap.servers": at["kafka.bootstrap.servers"], "group.id": "x"}
            )
            deadline = time.monotonic() + LIMIT_SECONDS
            while not consumer.get_watermark_offsets(TopicPartition(copy, 1), 10)[1]:
                assert time.monotonic() < deadline
            raise OSError("the first task fails")

    def run(records_per_task: str = "10000", *, in_one_task: bool = False) -> None:
        source = spark.readStream.format("odradek").options(**at, path=str(broker.data))
        source.option("subscribe", topic).option("startingOffsets", "earliest")
        rows = source.option("maxRecordsPerPartition", records_per_task).load()
        query = (
            (rows.coalesce(1) if in_one_task else rows)
            .select("value", "partition")
            .mapInArrow(first_task_fails, "value binary, partition int")
            .writeStream.format("odradek")
            .options(**at, topic=copy, repeatTimeout="2s")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(LIMIT_SECONDS)

    fails.touch()
    with pytest.raises(Exception, match="the first task fails"):
        run()
    fails.unlink()
    with pytest.raises(Exception, match="was written in part by an earlier run"):
        run(in_one_task=True)
    run(records_per_task="2")  # the source divides the batch as before
    values = committed_values(broker.bootstrap, copy, 2)
    assert values == [b"v%d" % number for number in range(10)]
