"""The queries of spark_reading.py: they run in Spark's process, given the session in front."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COUNTED = "count"


def _discard(frame: "DataFrame") -> None:
    frame.write.format("noop").mode("overwrite").save()


def _aggregate(frame: "DataFrame") -> None:
    from pyspark.sql import functions

    frame.groupBy("partition").agg(
        functions.count("*"),
        functions.sum(functions.octet_length("value")),
        functions.max("timestamp"),
    ).collect()


QUERIES: Mapping[str, "Callable[[DataFrame], object]"] = {
    "all": _discard,
    "headers": _discard,
    "value": lambda frame: _discard(frame.select("value")),
    COUNTED: lambda frame: frame.count(),
    "aggregate": _aggregate,
}
# A Python data source is told which columns are wanted by the schema alone.
SCHEMAS: Mapping[str, str] = {
    "value": "value binary",
    COUNTED: "offset bigint",
    "aggregate": "value binary, partition int, timestamp timestamp",
}


def run(
    spark: "SparkSession", source: str, options: Mapping[str, str], query: str
) -> tuple[float, object]:
    """How many seconds it takes to read all of a topic so, and what the query answers."""
    began = time.perf_counter()
    reader = spark.read.format(source).options(**options)
    if query == "headers":
        reader = reader.option("includeHeaders", "true")
    if source == "odradek" and query in SCHEMAS:
        reader = reader.schema(SCHEMAS[query])
    answer = QUERIES[query](reader.load())
    return time.perf_counter() - began, answer
