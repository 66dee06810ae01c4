"""What Spark is made to do with `format("odradek")`. Each function is given the session first."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.conformance.spark_jobs import WAIT_SECONDS, Options, Row, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read(spark: "SparkSession", options: Options) -> list[Row]:
    """Every record of `spark.read`, in the order of the log."""
    return rows_of(spark.read.format("odradek").options(includeHeaders="true", **options).load())


def task_count(spark: "SparkSession", options: Options) -> int:
    """How many tasks such a read has."""
    return spark.read.format("odradek").options(**options).load().rdd.getNumPartitions()


def stream(spark: "SparkSession", options: Options, checkpoint: Path) -> tuple[list[Row], int]:
    """The records that a query with AvailableNow sees, and in how many batches."""
    start = {"startingOffsets": "earliest", "includeHeaders": "true"}
    source = spark.readStream.format("odradek").options(**start, **options).load()
    writer = source.writeStream.format("memory").queryName(checkpoint.name)
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(WAIT_SECONDS), query.status
    batches = [progress for progress in query.recentProgress if progress.numInputRows]
    return rows_of(spark.table(checkpoint.name)), len(batches)
