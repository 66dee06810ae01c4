"""The two ways to archive of spark_archiving.py: they run in Spark's process."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def by_odradek(spark: "SparkSession", data: str, topic: str, archive: str) -> tuple[float, None]:
    """Seconds that the job takes for the closed segments of a topic."""
    from odradek.pipeline.jobs.archive.job import ArchiveSettings, run_archive
    from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation
    from odradek.pipeline.jobs.spark_tasks import SparkTasks
    from odradek.pipeline.jobs.topic_choice import TopicChoice

    settings = ArchiveSettings(
        log_directories=[Path(data)],
        archive=ArchiveLocation(archive),
        topics=TopicChoice(names=[topic]),
    )
    began = time.perf_counter()
    run_archive(SparkTasks(spark), settings)
    return time.perf_counter() - began, None


def by_connector(
    spark: "SparkSession", source: Mapping[str, str], parquet: Mapping[str, str], archive: str
) -> tuple[float, None]:
    """Seconds that the connector and Spark's writer take for the same."""
    from pyspark.sql import functions

    began = time.perf_counter()
    frame = spark.read.format("kafka").options(includeHeaders="true", **source).load()
    dated = frame.withColumn("date", functions.to_date("timestamp"))
    dated.write.partitionBy("topic", "date").options(**parquet).parquet(archive)
    return time.perf_counter() - began, None
