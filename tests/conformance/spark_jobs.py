"""What the connector is made to do. Each function is given the Spark session first."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.conformance.clients.client import Header

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

Options = Mapping[str, str]
WAIT_SECONDS = 30.0
WRITTEN = "key binary, value binary, partition int, headers array<struct<key:string,value:binary>>"


class Row(NamedTuple):
    """A record as Spark's source shows it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    timestamp_type: int
    headers: tuple[Header, ...]


class Written(NamedTuple):
    """A record as Spark's sink is given it; `partition` None leaves the choice to the producer."""

    key: bytes | None
    value: bytes | None
    partition: int | None = None
    headers: tuple[Header, ...] | None = None


# -- batches ------------------------------------------------------------------------------------


def read(spark: "SparkSession", options: Options) -> list[Row]:
    """Every record of `spark.read`, in the order of the log."""
    return rows_of(spark.read.format("kafka").options(**_with_headers(options)).load())


def columns(spark: "SparkSession", options: Options) -> list[str]:
    """The names of the columns."""
    return spark.read.format("kafka").options(**options).load().columns


def partition_count(spark: "SparkSession", options: Options) -> int:
    """How many tasks a batch read is cut into."""
    return spark.read.format("kafka").options(**options).load().rdd.getNumPartitions()


def write(spark: "SparkSession", records: Sequence[Written], options: Options) -> None:
    """Write the records with `df.write`."""
    frame = spark.createDataFrame([tuple(each) for each in records], WRITTEN)
    frame.write.format("kafka").options(**options).save()


def write_numbers(
    spark: "SparkSession", options: Options, count: int, topics: Sequence[str]
) -> None:
    """Records 0, 1, ..., to each of the topics in turn: a column of the rows names it."""
    names = ", ".join(f"'{topic}'" for topic in topics)
    rows = spark.range(0, count, numPartitions=4).selectExpr(
        f"array({names})[id % {len(topics)}] as topic", "cast(id as string) as value"
    )
    rows.write.format("kafka").options(**options).save()


def set_conf(spark: "SparkSession", name: str, value: str) -> None:
    """Change a setting of the session."""
    spark.conf.set(name, value)


# -- streams ------------------------------------------------------------------------------------


def stream(spark: "SparkSession", options: Options, checkpoint: Path) -> list[list[Row]]:
    """The micro-batches that a query with AvailableNow sees, from its checkpoint on."""
    query = _Collected(spark, options, checkpoint, availableNow=True)
    query.wait()
    return query.batches


def copy(spark: "SparkSession", source: Options, sink: Options, checkpoint: Path) -> None:
    """A query from topic to topic with AvailableNow."""
    _await(_copying(spark, source, sink, checkpoint).trigger(availableNow=True).start())


def start_copying(spark: "SparkSession", source: Options, sink: Options, checkpoint: Path) -> None:
    """The same in the continuous mode, which does not end by itself; there is one at a time."""
    writer = _copying(spark, source, sink, checkpoint)
    _COPYING.append(writer.trigger(continuous="200 milliseconds").start())


def stop_copying(spark: "SparkSession") -> None:
    """End it. Raises what it failed with."""
    query = _COPYING.pop()
    query.stop()
    error = query.exception()
    if error is not None:
        raise error


def start(spark: "SparkSession", options: Options, checkpoint: Path) -> None:
    """Start a query that goes on; there is one at a time."""
    _LIVE.append(_Collected(spark, options, checkpoint, processingTime="100 milliseconds"))


def seen(spark: "SparkSession", count: int) -> list[Row]:
    """What the running query has seen, as soon as that are so many records."""
    (query,) = _LIVE
    return query.wait_for(count)


def stop(spark: "SparkSession") -> None:
    """End the running query."""
    _LIVE.pop().query.stop()


class _Collected:
    """A query whose micro-batches are kept."""

    def __init__(
        self, spark: "SparkSession", options: Options, checkpoint: Path, **trigger: object
    ) -> None:
        self.batches: list[list[Row]] = []
        source = spark.readStream.format("kafka").options(**_with_headers(options)).load()
        writer = source.writeStream.foreachBatch(lambda frame, _: self._keep(frame))
        writer = writer.option("checkpointLocation", str(checkpoint))
        self.query: StreamingQuery = writer.trigger(**trigger).start()

    def _keep(self, frame: "DataFrame") -> None:
        self.batches.append(rows_of(frame))

    def wait(self) -> None:
        _await(self.query)

    def wait_for(self, count: int) -> list[Row]:
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            error = self.query.exception()
            if error is not None:
                raise error
            rows = [row for batch in self.batches for row in batch]
            if len(rows) >= count:
                return rows
            time.sleep(0.02)
        raise TimeoutError(f"{len(rows)} of {count} records")


_LIVE: list[_Collected] = []
_COPYING: "list[StreamingQuery]" = []


def _await(query: "StreamingQuery") -> None:
    if not query.awaitTermination(WAIT_SECONDS):
        query.stop()
        raise TimeoutError(f"the query is not finished: {query.status}")


def _copying(
    spark: "SparkSession", source: Options, sink: Options, checkpoint: Path
) -> "DataStreamWriter":
    frame = spark.readStream.format("kafka").options(**_with_headers(source)).load()
    writer = frame.select("key", "value", "headers").writeStream.format("kafka")
    return writer.options(**sink).option("checkpointLocation", str(checkpoint))


# -- rows ---------------------------------------------------------------------------------------


def _with_headers(options: Options) -> dict[str, str]:
    return {"includeHeaders": "true", **options}


def rows_of(frame: "DataFrame") -> list[Row]:
    """The records that a source shows, in the order of the log."""
    chosen = frame.selectExpr(
        *("topic", "partition", "offset", "key", "value"),
        *("unix_millis(timestamp) as timestamp_ms", "timestampType", "headers"),
    )
    return sorted(_row(each) for each in chosen.collect())


def _row(found: Sequence[object]) -> Row:
    topic, partition, offset, key, value, timestamp_ms, timestamp_type, headers = found
    return Row(
        topic,
        partition,
        offset,
        _bytes(key),
        _bytes(value),
        timestamp_ms,
        timestamp_type,
        tuple((each.key, _bytes(each.value)) for each in headers or ()),
    )


def _bytes(value: "bytearray | None") -> bytes | None:
    return None if value is None else bytes(value)
