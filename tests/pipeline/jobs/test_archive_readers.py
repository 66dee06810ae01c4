"""Archives that are killed while their table is read: each record is seen at most once, and never
fewer than before."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable

from odradek.pipeline.jobs.archive.job import ArchiveSettings
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation
from tests.support.archives import (
    archive_here,
    at,
    logged,
    rows_of,
    seen,
    small_segments,
    write_more,
)
from tests.support.crashing_files import QuickFiles
from tests.support.lengths import LONG, SEED, by_length, only_long
from tests.support.log_box import NOW_MS
from tests.support.object_store import running_object_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

QUICK = QuickFiles()
RUN = """
import json, sys
from pathlib import Path
from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation
from tests.pipeline.jobs.test_archive_readers import settings_for
from tests.support.archives import archive_here

archive = ArchiveLocation(sys.argv[2], json.loads(sys.argv[3]))
while True:
    try:
        archive_here(settings_for(Path(sys.argv[1]), archive))
    except JobError as error:  # two runs at once
        print(error, file=sys.stderr)
"""
Read = Callable[[ArchiveLocation], list[int]]


def settings_for(root: Path, archive: ArchiveLocation) -> ArchiveSettings:
    return ArchiveSettings(
        log_directories=[root / "log"],
        archive=archive,
        until_end=True,
        max_split_bytes=600,
        compact=True,
    )


def by_polars(archive: ArchiveLocation) -> list[int]:
    table = pl.scan_delta(archive.uri, storage_options=dict(archive.options))
    return table.select("offset").collect()["offset"].to_list()


def by_duckdb(archive: ArchiveLocation) -> list[int]:
    dataset = DeltaTable(archive.uri, storage_options=dict(archive.options)).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        connection.register("archive", dataset)
        found = connection.execute('SELECT "offset" FROM archive').fetchall()
    return [offset for (offset,) in found]


class Reader(threading.Thread):
    """Reads the table again and again. `problem` says what was wrong."""

    def __init__(self, archive: ArchiveLocation, read: Read) -> None:
        super().__init__(daemon=True)
        self._archive = archive
        self._read = read
        self.ended = threading.Event()
        self.reads = 0
        self.problem = ""

    def run(self) -> None:
        before: set[int] = set()
        try:
            while not self.ended.is_set() and not self.problem:
                offsets = self._read(self._archive)
                if len(set(offsets)) < len(offsets):
                    self.problem = "a record was seen twice"
                if not before <= set(offsets):
                    self.problem = f"{len(before - set(offsets))} records were missing"
                before = set(offsets)
                self.reads += 1
        except Exception as error:  # noqa: BLE001 # a thread's root; the test reports it
            self.problem = repr(error)


def kill_while_read(
    root: Path,
    archive: ArchiveLocation,
    read_at: ArchiveLocation,
    reads: list[Read],
    *,
    kills: int,
    within_seconds: float,
) -> None:
    """Kill archives of a growing log, one or two at a time, in their first seconds."""
    box = small_segments(root)
    log = box.open()
    write_more(log, 20)
    settings = settings_for(root, archive)
    archive_here(settings, QUICK)
    readers = [Reader(read_at, read) for read in reads]
    for reader in readers:
        reader.start()
    rng = random.Random(SEED)
    where = (str(root), archive.uri, json.dumps(dict(archive.options)))
    command = [sys.executable, "-W", "ignore", "-c", RUN, *where]
    for kill in range(kills):
        write_more(log, 20)
        runs = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(1 + kill % 2)]
        time.sleep(rng.uniform(1.0, within_seconds))  # any moment of a run: nothing waits for this
        for run in runs:
            assert run.poll() is None
            os.kill(run.pid, signal.SIGKILL)
            run.wait()
    for reader in readers:
        reader.ended.set()
        reader.join()
        assert (reader.problem, reader.reads > 1) == ("", True)
    log.close(NOW_MS)
    archive_here(settings, QUICK)
    assert rows_of(seen(read_at)) == logged(box.directory)


def test_readers_see_all_of_the_records_while_archives_are_killed(tmp_path: Path) -> None:
    archive = at(tmp_path / "archive")
    reads = [by_polars, by_duckdb]
    kill_while_read(tmp_path, archive, archive, reads, kills=by_length(2, 50), within_seconds=2.0)


@only_long("requests fail in test_archive_object_store.py")
def test_readers_of_a_failing_object_store_see_all_of_the_records(tmp_path: Path) -> None:
    """One request of the archives in ten fails; those of the readers do not."""
    with running_object_store() as store:
        store.fail(seed=1, rate=0.1)
        archive, read_at = (store.location("archive", fails=fails) for fails in (True, False))
        reads = [by_polars, by_duckdb]
        kill_while_read(
            tmp_path, archive, read_at, reads, kills=by_length(2, 50), within_seconds=5.0
        )


@pytest.mark.skipif(not LONG, reason="long only: others read above")
def test_spark_sees_all_of_the_records_while_archives_are_killed(
    spark: "SparkSession", tmp_path: Path
) -> None:
    def by_spark(archive: ArchiveLocation) -> list[int]:
        files = spark.read.parquet(*DeltaTable(archive.uri).file_uris())
        return [row.offset for row in files.select("offset").collect()]

    archive = at(tmp_path / "archive")
    kill_while_read(tmp_path, archive, archive, [by_spark], kills=50, within_seconds=2.0)
