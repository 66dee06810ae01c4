"""Rows of Spark go to Apache Kafka: by Spark's Kafka sink, and by ours, with and without
transactions.

In turns, in the same JVM; the rows are made by Spark as they are needed, for all alike. The CPU is
that of Spark, its Python workers and the broker. The connector's sink writes at least once.
"""

import functools
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipeline.sink.write_options import Delivery
from tests.bench.spark_costs import (
    MASTERS,
    Cost,
    Figures,
    MeteredSpark,
    compared,
    costs_of,
    running_spark,
)
from tests.bench.spark_topics import PARTITIONS, VALUE_BYTES
from tests.support.broker_process import BrokerProcess, WarmedKafkaProcess
from tests.support.spark_process import why_no_connector
from tests.support.topics import create_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = 2_000_000
SPARK = {"spark.driver.memory": "2g"}
VALUE = f"rpad(concat('{{\"id\": ', id, '}}'), {VALUE_BYTES}, ' ') as value"
ROWS = {"values": [VALUE], "keyed": ["cast(id as string) as key", VALUE]}
DELIVERIES = (Delivery.AT_LEAST_ONCE, Delivery.EXACTLY_ONCE)


def spark_writing(scratch: Path, rounds: int, share: int) -> Figures:
    """Records written per second and per CPU second, and how they compare."""
    reason = why_no_connector()
    if reason:
        print(f"spark_writing: {reason}")
        return {}
    kafka = WarmedKafkaProcess(scratch / "spark-writing", {})
    figures: Figures = {}
    try:
        kafka.start()
        for name in ROWS:
            create_topic(kafka.bootstrap, name, PARTITIONS)
        for master in MASTERS:
            with running_spark(scratch, SPARK, master) as spark:
                for name in ROWS:
                    costs = _costs(kafka, spark, name, rounds, RECORDS // share)
                    for delivery in DELIVERIES:
                        both = {"kafka": costs["kafka"], "odradek": costs[delivery]}
                        label = f"{master}_{name}_{delivery.name.lower()}"
                        figures |= compared(label, RECORDS // share, both)
    finally:
        kafka.stop()
    return figures


def _costs(
    kafka: BrokerProcess, spark: MeteredSpark, topic: str, rounds: int, rows: int
) -> Mapping[str, list[Cost]]:
    """By the connector and by each delivery of ours. A first round warms all up."""
    sinks: dict[str, tuple[str, dict[str, str]]] = {"kafka": ("kafka", {})} | {
        delivery: ("odradek", {"delivery": delivery}) for delivery in DELIVERIES
    }
    costs: dict[str, list[Cost]] = {name: [] for name in sinks}
    for number in range(rounds + 1):
        for name, (sink, more) in sinks.items():
            options = {"kafka.bootstrap.servers": kafka.bootstrap, "topic": topic, **more}
            work = functools.partial(spark.process.do, write, rows, ROWS[topic], sink, options)
            cost, _ = costs_of(kafka, spark, work, with_broker=True)
            if number:
                costs[name].append(cost)
    return costs


def write(
    spark: "SparkSession", rows: int, columns: list[str], sink: str, options: Mapping[str, str]
) -> tuple[float, None]:
    """The seconds; runs in Spark's process."""
    frame = spark.range(0, rows, 1, PARTITIONS).selectExpr(*columns)
    began = time.perf_counter()
    frame.write.format(sink).mode("append").options(**options).save()
    return time.perf_counter() - began, None


WORKLOADS = {"spark_writing": spark_writing}
