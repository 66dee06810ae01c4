"""Closed segments that Apache Kafka wrote become Parquet files: by Spark's connector, and by us.

Both in one run, in turns, in the same JVM, from the same topics; the files are counted, and so are
the records in them. What makes the two comparable:

- the same records: the connector is told to end where each partition's active segment begins,
  which the job leaves for later;
- the same files: the columns of both are those of Spark's Kafka source, by topic and date, zstd of
  the same level, times of microseconds (Spark's default is INT96), and the connector gets as many
  parts as the job made files (`minPartitions`);
- else Spark's writer is as it comes: without its sort by date (`maxConcurrentOutputFileWriters`),
  or without dictionaries of values (`parquet.enable.dictionary`), it was no faster.

odradek checks the checksum of each batch, as the connector's consumer does, and syncs its files,
as Spark does not.
"""

import functools
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from odradek.pipeline.jobs.archive.parquet.parquet_format import ZSTD_LEVEL
from tests.bench.spark_archives import by_connector, by_odradek
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
from tests.bench.spark_topics import PARTITIONS, RECORDS, fill
from tests.support.broker_process import BrokerProcess, WarmedKafkaProcess
from tests.support.spark_process import why_no_connector

TOPICS = ("plain", "keyed", "zstd")
SEGMENT_BYTES = 16 << 20
SPARK = {
    "spark.driver.memory": "2g",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
PARQUET = {
    "compression": "zstd",
    "parquet.compression.codec.zstd.level": str(ZSTD_LEVEL),
}


class Written(NamedTuple):
    """What lies in an archive."""

    records: int
    files: int
    size_bytes: int


def spark_archiving(scratch: Path, rounds: int, share: int) -> Figures:
    """Records archived per second and per CPU second, how they compare, and the files' sizes."""
    reason = why_no_connector()
    if reason:
        print(f"spark_archiving: {reason}")
        return {}
    small_segments = {"log.segment.bytes": str(SEGMENT_BYTES)}
    kafka = WarmedKafkaProcess(scratch / "spark-archiving", small_segments)
    figures: Figures = {}
    try:
        kafka.start()
        for name in TOPICS:
            fill(kafka, name, RECORDS // share)
        for master in MASTERS:
            with running_spark(scratch, SPARK, master) as spark:
                for name in TOPICS:
                    bench = _Bench(kafka, spark, name, scratch / "archive")
                    figures |= bench.figures(f"{master}_{name}", rounds)
    finally:
        kafka.stop()
    return figures | growth(figures)


class _Bench:
    """Archives one topic both ways, again and again."""

    def __init__(
        self, kafka: BrokerProcess, spark: MeteredSpark, topic: str, archive: Path
    ) -> None:
        self._kafka = kafka
        self._spark = spark
        self._topic = topic
        self._archive = archive
        self._ends = active_segments(kafka.data, topic)

    def figures(self, label: str, rounds: int) -> Figures:
        """A first round warms both up."""
        costs: dict[str, list[Cost]] = {source: [] for source in SOURCES}
        figures: Figures = {}
        expected = sum(self._ends.values())
        for number in range(rounds + 1):
            files = 0
            for source in reversed(SOURCES):
                cost, written = self._once(source, files)
                assert written.records == expected, f"{source}: {written} of {expected}"
                files = written.files
                if number:
                    costs[source].append(cost)
                figures[f"{label}_{source}_files"] = written.files
                figures[f"{label}_{source}_MB"] = written.size_bytes / 1e6
        return compared(label, expected, costs) | figures

    def _once(self, source: str, files: int) -> tuple[Cost, Written]:
        work = self._connector(files) if source == "kafka" else self._job()
        try:
            cost, _ = costs_of(self._kafka, self._spark, work, with_broker=source == "kafka")
            return cost, written_in(self._archive)
        finally:
            shutil.rmtree(self._archive, ignore_errors=True)

    def _job(self) -> Callable[[], tuple[float, None]]:
        data, archive = str(self._kafka.data), str(self._archive)
        return functools.partial(self._spark.process.do, by_odradek, data, self._topic, archive)

    def _connector(self, files: int) -> Callable[[], tuple[float, None]]:
        source = {
            "kafka.bootstrap.servers": self._kafka.bootstrap,
            "subscribe": self._topic,
            "endingOffsets": json.dumps({self._topic: self._ends}),
            "minPartitions": str(files),
        }
        return functools.partial(
            self._spark.process.do, by_connector, source, PARQUET, str(self._archive)
        )


def active_segments(data: Path, topic: str) -> Mapping[int, int]:
    """Where each partition's active segment begins: what lies before is archived."""
    return {
        partition: max(int(log.stem) for log in (data / f"{topic}-{partition}").glob("*.log"))
        for partition in range(PARTITIONS)
    }


def written_in(archive: Path) -> Written:
    """By the files' own footers."""
    import pyarrow.parquet as pq

    paths = list(archive.glob("topic=*/date=*/*.parquet"))
    return Written(
        sum(pq.read_metadata(path).num_rows for path in paths),
        len(paths),
        sum(path.stat().st_size for path in paths),
    )


WORKLOADS = {"spark_archiving": spark_archiving}
