"""spark.readStream.format("odradek"): nothing is lost or doubled between batches and queries."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark")

from confluent_kafka import Producer

from tests.support.broker_process import BrokerProcess
from tests.support.lengths import by_length, only_long
from tests.support.spark_versions import needs_limits
from tests.support.topics import create_topic, delete_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

LIMIT_SECONDS = 60.0


class Stream:
    """A query from topics into Parquet files, which can be run again and again."""

    def __init__(
        self, spark: "SparkSession", broker: BrokerProcess, pattern: str, root: Path
    ) -> None:
        self._spark, self._broker, self._pattern = spark, broker, pattern
        self._out, self._checkpoint = root / "out", root / "checkpoint"

    def start(self, trigger: dict[str, Any], **options: str) -> "StreamingQuery":
        where = {"path": str(self._broker.data), "kafka.bootstrap.servers": self._broker.bootstrap}
        frame = (
            self._spark.readStream.format("odradek")
            .options(**where, subscribePattern=self._pattern)
            .options(**{"startingOffsets": "earliest", **options})
            .load()
        )
        writer = frame.select("topic", "partition", "offset", "value").writeStream
        return (
            writer.format("parquet")
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(**trigger)
            .start(str(self._out))
        )

    def catch_up(self, **options: str) -> list[int]:
        """Run it until all that is there has been read; the number of rows of each batch."""
        query = self.start({"availableNow": True}, **options)
        assert query.awaitTermination(LIMIT_SECONDS)
        return [progress.numInputRows for progress in query.recentProgress]

    def values(self) -> list[str]:
        """What has come out so far, in the order of partitions and offsets."""
        made = self._spark.read.parquet(str(self._out)).sort("topic", "partition", "offset")
        return [row.value.decode() for row in made.collect()]

    def last_offsets(self) -> Any:
        """What the checkpoint contains of the last batch."""
        return json.loads(self._last_file().read_text().splitlines()[-1])

    def make_older(self) -> None:
        """Make the checkpoint one of odradek 0.1."""
        path = self._last_file()
        lines = path.read_text().splitlines()
        offsets = self.last_offsets()
        del offsets["#tasks"]
        for of_topic in offsets.values():
            del of_topic["topicId"]
        path.write_text("\n".join([*lines[:-1], json.dumps(offsets)]))
        (path.parent / f".{path.name}.crc").unlink()

    def _last_file(self) -> Path:
        files = (self._checkpoint / "offsets").glob("[0-9]*")
        return max(files, key=lambda path: int(path.name))


def produce(broker: BrokerProcess, topic: str, values: range, partitions: int = 1) -> list[str]:
    """Values such as `t:0007`, dealt to the partitions in turn."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "lz4"})
    texts = [f"{topic}:{number:04}" for number in values]
    for number, text in zip(values, texts, strict=True):
        producer.produce(topic, text.encode(), partition=number % partitions)
    assert producer.flush(LIMIT_SECONDS) == 0
    return texts


@needs_limits
@pytest.mark.parametrize("mode", by_length(["files"], ["files", "broker"]))
def test_a_stream_resumes_from_its_checkpoint(
    spark: "SparkSession", broker: BrokerProcess, topic: str, tmp_path: Path, mode: str
) -> None:
    topic = f"{topic}.{mode}"
    create_topic(broker.bootstrap, topic, 2)
    stream = Stream(spark, broker, f"{topic}.*", tmp_path)
    limited = {"maxOffsetsPerTrigger": "40", "mode": mode}
    texts = produce(broker, topic, range(100), 2)
    assert stream.catch_up(**limited) == [40, 40, 20]
    last = stream.last_offsets()
    assert last[topic] == {"0": 50, "1": 50, "topicId": last[topic]["topicId"]}
    assert last["#tasks"] == {"maxRecordsPerPartition": 1_000_000}
    stream.make_older()
    texts += produce(broker, topic, range(100, 110), 2)
    create_topic(broker.bootstrap, f"{topic}.new")
    texts += produce(broker, f"{topic}.new", range(5))
    assert sum(stream.catch_up(**limited)) == 15
    assert sum(stream.catch_up(**limited)) == 0
    assert stream.last_offsets()[topic] == last[topic] | {"0": 55, "1": 55}
    assert sorted(stream.values()) == sorted(texts)


@pytest.mark.parametrize("mode", by_length(["files"], ["files", "broker"]))
def test_a_topic_that_is_created_again_between_two_queries_is_lost_data(
    spark: "SparkSession", broker: BrokerProcess, topic: str, tmp_path: Path, mode: str
) -> None:
    topic = f"{topic}.{mode}"
    create_topic(broker.bootstrap, topic)
    stream = Stream(spark, broker, topic, tmp_path)
    texts = produce(broker, topic, range(5))
    stream.catch_up(mode=mode)
    delete_topic(broker.bootstrap, topic)
    create_topic(broker.bootstrap, topic)
    texts += produce(broker, topic, range(10, 17))
    for other_mode in ("files", "broker"):
        with pytest.raises(Exception, match=f"the topic {topic} was deleted and created again"):
            stream.catch_up(mode=other_mode)
    stream.catch_up(mode=mode, failOnDataLoss="false")
    texts += produce(broker, topic, range(20, 22))
    stream.catch_up(mode=mode)
    assert sorted(stream.values()) == texts


def test_a_running_stream_reads_new_records_and_detects_a_deleted_topic(
    spark: "SparkSession", broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    create_topic(broker.bootstrap, topic)
    produce(broker, topic, range(10))
    stream = Stream(spark, broker, topic, tmp_path)
    query = stream.start({"processingTime": "0 seconds"}, startingOffsets="latest")
    query.processAllAvailable()
    texts = produce(broker, topic, range(10, 20))
    query.processAllAvailable()
    assert stream.values() == texts
    delete_topic(broker.bootstrap, topic)
    with pytest.raises(Exception, match="no longer exist"):
        query.awaitTermination(LIMIT_SECONDS)
    assert not query.isActive


@only_long("options of streams are in test_options.py")
def test_a_stream_has_no_end_to_be_set(
    spark: "SparkSession", broker: BrokerProcess, topic: str, tmp_path: Path
) -> None:
    stream = Stream(spark, broker, topic, tmp_path)
    with pytest.raises(Exception, match="endingOffsets is not valid in streaming queries"):
        stream.catch_up(endingOffsets="latest")
