"""A cluster of two workers: both work, and what comes out is what one process makes.

The workers know nothing of odradek but what is installed where their Python looks.
"""

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from odradek.pipeline.jobs.archive.job import ArchiveSettings, run_archive
from odradek.pipeline.jobs.spark_tasks import SparkTasks
from odradek.protocol.compression import CompressionType
from tests.conformance.kafkas_files.spark_reads import read
from tests.support.archives import at, logged, rows_of, seen
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import Writer
from tests.support.lengths import LONG, only_long
from tests.support.log_box import NOW_MS, LogBox, put
from tests.support.quick_spark import quick_java_options
from tests.support.spark_cluster import SparkCluster, recording, tasks_of_executors
from tests.support.spark_process import SparkProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT_SECONDS = 100.0
# A job begins when it has both, or one could do all of it before the other is there.
BOTH_WORKERS = {
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
}


@pytest.fixture(scope="module")
def cluster(
    spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkCluster]:
    """A master and two workers; skips where Spark cannot run."""
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def small_log(tmp_path: Path) -> Path:
    """A log directory with three partitions of many segments."""
    for partition in range(3):
        box = LogBox(tmp_path / "log", files=QuickFiles(), segment_bytes=4000)
        box.directory = tmp_path / "log" / f"orders-{partition}"
        opened = box.open()
        Writer(partition, codecs=tuple(CompressionType)).write(opened, 60)
        opened.close(NOW_MS)
    return tmp_path / "log"


@pytest.fixture
def large_log(tmp_path: Path) -> Path:
    """One with four partitions, each enough for a task of the archive."""
    root, rng = tmp_path / "log", random.Random(7)
    log = LogBox(root, segment_bytes=4 << 20).open()
    while log.size_bytes < 10 << 20:
        put(log, *(rng.randbytes(20_000) for _ in range(20)))
    log.close(NOW_MS)
    for number in range(1, 4):
        shutil.copytree(root / "orders-0", root / f"orders-{number}")
    return root


def on(cluster: SparkCluster, events: Path) -> dict[str, str]:
    """Settings of an application; `events` is where it records what it does."""
    return {
        **recording(events),
        **BOTH_WORKERS,
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": quick_java_options(),
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": quick_java_options(),
        "spark.ui.enabled": "false",
    }


def check_both_worked(events: Path, application: str) -> None:
    tasks = tasks_of_executors(events)[application]
    assert set(tasks) == {"0", "1"}, tasks


@pytest.mark.skipif(not LONG, reason="long only: a job reads on both below")
def test_both_workers_read_and_the_rows_are_those_of_one_process(
    cluster: SparkCluster, spark: "SparkSession", small_log: Path, tmp_path: Path
) -> None:
    options = {"path": str(small_log), "subscribe": "orders", "maxSplitBytes": "3k"}
    committed = {**options, "kafka.isolation.level": "read_committed"}
    events = tmp_path / "events"
    with SparkProcess(
        tmp_path, on(cluster, events), cluster.master, connector=False
    ) as application:
        found = application.do(read, options), application.do(read, committed)
    assert found == (read(spark, options), read(spark, committed))
    assert len(found[0]) > len(found[1]) > 100
    check_both_worked(events, "odradek-tests")


@only_long("jobs run on Spark in test_jobs_on_spark.py")
def test_a_job_of_the_command_line_runs_on_both_workers(
    cluster: SparkCluster, spark: "SparkSession", large_log: Path, tmp_path: Path
) -> None:
    events = tmp_path / "events"
    conf = [f"--conf={name}={value}" for name, value in on(cluster, events).items()]
    command = [str(Path(sys.executable).with_name("odradek")), "pipeline", "archive"]
    where = [str(tmp_path / "clustered"), "--path", str(large_log), "--until-end"]
    done = subprocess.run(
        [*command, *where, "--master", cluster.master, *conf],
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr + cluster.log_text()
    here = ArchiveSettings(
        log_directories=[large_log], archive=at(tmp_path / "here"), until_end=True
    )
    run_archive(SparkTasks(spark), here)
    found = rows_of(seen(at(tmp_path / "clustered")))
    assert found == rows_of(seen(at(tmp_path / "here")))
    assert found == [row for each in sorted(large_log.glob("orders-*")) for row in logged(each)]
    check_both_worked(events, "odradek archive")
