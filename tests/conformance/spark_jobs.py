"""What the connector is made to do. Each function is given the Spark session first."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.conformance.clients.client import Header

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Options = Mapping[str, str]
WAIT_SECONDS = 100.0
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


def write(spark: "SparkSession", records: Sequence[Written], options: Options) -> None:
    """Write the records with `df.write`."""
    frame = spark.createDataFrame([tuple(each) for each in records], WRITTEN)
    frame.write.format("kafka").options(**options).save()


# -- streams ------------------------------------------------------------------------------------


def stream(spark: "SparkSession", options: Options, checkpoint: Path) -> list[list[Row]]:
    """The micro-batches that a query with AvailableNow sees, from its checkpoint on."""
    batches: list[list[Row]] = []
    source = spark.readStream.format("kafka").options(**_with_headers(options)).load()
    writer = source.writeStream.foreachBatch(lambda frame, _: batches.append(rows_of(frame)))
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    if not query.awaitTermination(WAIT_SECONDS):
        query.stop()
        raise TimeoutError(f"the query is not finished: {query.status}")
    return batches


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


def _row(found: Sequence[Any]) -> Row:
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
