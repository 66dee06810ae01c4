"""Archive and replay as Spark runs them: what cannot be seen without it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odradek.pipeline.jobs.archive.job import ArchiveSettings, run_archive
from odradek.pipeline.jobs.archive.splitting.json_schema import parse_json_schema
from odradek.pipeline.jobs.replay.job import ReplaySettings, run_replay
from odradek.pipeline.jobs.spark_tasks import SparkTasks
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.protocol.compression import CompressionType
from tests.support.archives import Row, at, data_files, logged, rows_of, seen
from tests.support.broker_process import running_broker
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import Writer
from tests.support.lengths import only_long
from tests.support.log_box import NOW_MS, LogBox, put

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def written(root: Path, partitions: int = 2, batches: int = 50) -> list[Row]:
    """Logs of several segments; their committed records."""
    rows: list[Row] = []
    for partition in range(partitions):
        box = LogBox(root / "log", files=QuickFiles(), segment_bytes=4000, index_interval_bytes=200)
        box.directory = root / "log" / f"orders-{partition}"
        log = box.open()
        Writer(partition, codecs=tuple(CompressionType)).write(log, batches)
        log.close(NOW_MS)
        rows += logged(box.directory)
    return rows


def settings_for(root: Path, **more: Any) -> ArchiveSettings:
    more = {"until_end": True, "max_split_bytes": 2000, **more}
    return ArchiveSettings(log_directories=[root / "log"], archive=at(root / "archive"), **more)


def in_spark(spark: "SparkSession", settings: ArchiveSettings) -> "DataFrame":
    """The table in Spark without Delta's jars: its files as Parquet."""
    files = [str(path) for path in data_files(settings.archive)]
    reader = spark.read.option("basePath", settings.archive.uri).option("mergeSchema", "true")
    return reader.parquet(*files)


def test_an_archive_and_its_replay_equal_the_log(spark: "SparkSession", tmp_path: Path) -> None:
    expected = written(tmp_path)
    settings = settings_for(tmp_path, compact=True)
    summary = run_archive(SparkTasks(spark), settings)
    assert summary.total().records == len(expected)
    assert summary.total().merged_files > 0
    assert rows_of(seen(settings.archive)) == expected
    assert run_archive(SparkTasks(spark), settings).total().records == 0
    frame = in_spark(spark, settings)
    assert frame.count() == frame.select("partition", "offset").distinct().count()
    assert {row.topic for row in frame.select("topic").distinct().collect()} == {"orders"}
    with running_broker(tmp_path / "broker") as broker:
        run_replay(
            SparkTasks(spark),
            ReplaySettings(
                archive=settings.archive,
                client={"bootstrap.servers": broker.bootstrap},
                job_id="again",
                topics=TopicChoice(names=["orders"]),
                create=True,
            ),
        )
        for partition in range(2):
            found = logged(broker.data / f"orders-{partition}")
            assert [row[3:] for row in found] == [
                row[3:] for row in expected if row[1] == partition
            ]


@only_long("an archive is made above, and its columns in test_value_columns.py")
def test_values_become_columns_and_others_dead_letters(
    spark: "SparkSession", tmp_path: Path
) -> None:
    log = LogBox(tmp_path / "log", files=QuickFiles()).open()
    put(log, b'{"id": 1, "at": "2024-02-29T12:00:00Z"}', b"bad", b'{"id": 3}')
    log.close(NOW_MS)
    values = parse_json_schema('{"id": "long", "at": "timestamp"}')
    settings = settings_for(tmp_path, values=values)
    assert run_archive(SparkTasks(spark), settings).total().dead_letters == 1
    frame = in_spark(spark, settings).orderBy("offset")
    found = [(row.offset, row.id, str(row.at)) for row in frame.where("error IS NULL").collect()]
    assert found == [(0, 1, "2024-02-29 12:00:00"), (2, 3, "None")]
    (letter,) = frame.where("error IS NOT NULL").collect()
    assert (letter.topic, letter.offset, bytes(letter.value)) == ("orders", 1, b"bad")
    assert "JSON parse error" in letter.error


KILLED = """
import sys
from pathlib import Path
from odradek.pipeline.jobs.archive import job
from odradek.pipeline.jobs.spark_tasks import SparkTasks
from odradek.pipeline.session import make_session
from tests.support.archives import at

job._COMMIT_EVERY_S = 0.0
root = Path(sys.argv[1])
settings = job.ArchiveSettings(
    log_directories=[root / "log"],
    archive=at(root / "archive"),
    until_end=True,
    max_split_bytes=500,
)
job.run_archive(SparkTasks(make_session("local[2]")), settings)
"""


@only_long("archives are killed in test_archive_killed.py")
def test_killed_midway_and_run_again_each_record_is_there_once(
    spark: "SparkSession", tmp_path: Path
) -> None:
    expected = written(tmp_path, batches=120)
    settings = settings_for(tmp_path)
    table_log = tmp_path / "archive" / "_delta_log"
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path)],
        start_new_session=True,  # the JVM is killed with it
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 100
    while not table_log.exists() or len(list(table_log.glob("*.json"))) < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    # Its Python workers are in groups of their own: some may write on during the next run.
    between = rows_of(seen(settings.archive))
    assert 0 < len(between) < len(expected)
    assert len({row[1:3] for row in between}) == len(between)
    summary = run_archive(SparkTasks(spark), settings)
    assert rows_of(seen(settings.archive)) == expected
    assert 0 < summary.total().records < len(expected)
    assert len(data_files(settings.archive)) > summary.total().files
