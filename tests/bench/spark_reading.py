"""Spark reads topics that Apache Kafka wrote: its own connector through the broker, and our source.

Both in one run, in turns, in the same JVM: the connector asks Kafka, `format("odradek")` reads the
files of that same Kafka's directory (spark_topics.py, spark_costs.py).
"""

import functools
import itertools
from collections.abc import Mapping
from pathlib import Path

from tests.bench.spark_costs import (
    MASTERS,
    SOURCES,
    Cost,
    Figures,
    MeteredSpark,
    compared,
    costs_of,
    growth,
    running_spark,
)
from tests.bench.spark_queries import COUNTED, run
from tests.bench.spark_topics import RECORDS, fill
from tests.support.broker_process import BrokerProcess, WarmedKafkaProcess
from tests.support.spark_process import why_no_connector

QUERIES: Mapping[str, tuple[str, ...]] = {
    "plain": ("all", "value", COUNTED, "aggregate"),
    "keyed": ("headers",),
    "lz4": ("all", "value"),
    "zstd": ("all", "value"),
}


def spark_reading(scratch: Path, rounds: int, share: int) -> Figures:
    """Records per second and per CPU second of each query, and how they compare."""
    reason = why_no_connector()
    if reason:
        print(f"spark_reading: {reason}")
        return {}
    kafka = WarmedKafkaProcess(scratch / "spark-reading")
    figures: Figures = {}
    try:
        kafka.start()
        sizes = {name: fill(kafka, name, RECORDS // share) for name in QUERIES}
        for master in MASTERS:
            settings = {"spark.driver.memory": "2g"}
            with running_spark(scratch, settings, master) as spark:
                for (name, query), costs in measure(kafka, spark, sizes, rounds).items():
                    label = f"{master}_{name}_{query}"
                    figures |= compared(label, sizes[name], costs)
    finally:
        kafka.stop()
    return figures | growth(figures)


def measure(
    kafka: BrokerProcess, spark: MeteredSpark, sizes: Mapping[str, int], rounds: int
) -> dict[tuple[str, str], dict[str, list[Cost]]]:
    """The costs of each source for every topic and query; a first round warms both up."""
    found: dict[tuple[str, str], dict[str, list[Cost]]] = {}
    for number in range(rounds + 1):
        for name, queries in QUERIES.items():
            for query, source in itertools.product(queries, SOURCES):
                cost, answer = read_once(kafka, spark, name, query, source)
                assert answer == sizes[name] or query != COUNTED, f"{source} counts {answer}"
                if number:
                    found.setdefault((name, query), {}).setdefault(source, []).append(cost)
    return found


def read_once(
    kafka: BrokerProcess, spark: MeteredSpark, topic: str, query: str, source: str
) -> tuple[Cost, object]:
    """One read, and what the query answers."""
    where = {
        "kafka": {"kafka.bootstrap.servers": kafka.bootstrap},
        "odradek": {"path": str(kafka.data), "mode": "files"},
    }
    options = {**where[source], "subscribe": topic}
    work = functools.partial(spark.process.do, run, source, options, query)
    return costs_of(kafka, spark, work, with_broker=source == "kafka")


WORKLOADS = {"spark_reading": spark_reading}
