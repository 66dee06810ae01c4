"""Archives in an S3-compatible object store that fails now and then."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from odradek.pipeline.jobs.archive.job import ArchiveSettings
from odradek.pipeline.jobs.replay.job import ReplaySettings, run_replay
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader
from tests.support.archives import (
    InThisProcess,
    archive_here,
    logged,
    rows_of,
    seen,
    small_segments,
    write_more,
)
from tests.support.broker_process import running_broker
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import Writer
from tests.support.failing_proxy import NO_ANSWER
from tests.support.lengths import by_length, only_long
from tests.support.log_box import NOW_MS, TOPIC, LogBox
from tests.support.object_store import ObjectStore, running_object_store

pytestmark = pytest.mark.slow
QUICK = QuickFiles()


@pytest.fixture(scope="module")
def running() -> Iterator[ObjectStore]:
    with running_object_store() as store:
        yield store


@pytest.fixture
def store(running: ObjectStore) -> Iterator[ObjectStore]:
    yield running
    running.fail()


def written(root: Path) -> tuple[LogBox, PartitionLog]:
    box = small_segments(root)
    log = box.open()
    Writer(1, producers=False).write(log, 20)
    return box, log


def settings_for(root: Path, store: ObjectStore, **more: Any) -> ArchiveSettings:
    more = {"until_end": True, "max_split_bytes": 1500, **more}
    return ArchiveSettings(
        log_directories=[root / "log"], archive=store.location(root.name), **more
    )


def test_an_archive_in_an_object_store_is_continued_compacted_and_repaired(
    tmp_path: Path, store: ObjectStore
) -> None:
    box, log = written(tmp_path)
    settings = settings_for(tmp_path, store, compact=True)
    archive_here(settings, QUICK)
    log.truncate_to(
        next(islice(LogReader(box.directory).batches(), 10, None)).header.base_offset, NOW_MS
    )
    Writer(2, producers=False).write(log, 5)
    summary = archive_here(settings, QUICK)
    assert len(summary.repaired) == 1
    assert rows_of(seen(settings.archive)) == logged(box.directory)
    table = pl.scan_delta(settings.archive.uri, storage_options=dict(settings.archive.options))
    assert table.select(pl.len()).collect().item() == len(logged(box.directory))


@pytest.mark.parametrize("seed", range(by_length(1, 20)))
def test_whatever_requests_fail_each_record_is_there_once(
    tmp_path: Path, store: ObjectStore, seed: int
) -> None:
    box, log = written(tmp_path)
    settings = settings_for(tmp_path, store, compact=True)
    store.fail(seed=seed, rate=0.1)
    for _ in range(by_length(1, 4)):
        archive_here(settings, QUICK)
        write_more(log, 5)
    archive_here(settings, QUICK)
    store.fail()
    assert rows_of(seen(settings.archive)) == logged(box.directory)


def test_a_commit_whose_answer_never_comes_is_made_once(tmp_path: Path, store: ObjectStore) -> None:
    box, _ = written(tmp_path)
    settings = settings_for(tmp_path, store)

    store.fail(method="PUT", suffix="/_delta_log/00000000000000000001.json", fault=NO_ANSWER)
    archive_here(settings, QUICK)
    assert rows_of(seen(settings.archive)) == logged(box.directory)


@only_long("an archive is written while requests fail above")
def test_an_archive_in_an_object_store_is_replayed_while_requests_fail(
    tmp_path: Path, store: ObjectStore
) -> None:
    box, _ = written(tmp_path)
    settings = settings_for(tmp_path, store)
    archive_here(settings, QUICK)
    with running_broker(tmp_path / "broker") as broker:
        store.fail(seed=1, rate=0.1)
        replay = ReplaySettings(
            archive=settings.archive,
            client={"bootstrap.servers": broker.bootstrap},
            job_id="replay",
            topics=TopicChoice(names=[TOPIC]),
            to_topic="copy",
            create=True,
        )
        run_replay(InThisProcess(), replay)
        sent = logged(broker.data / "copy-0")
    assert [row[3:] for row in sent] == [row[3:] for row in logged(box.directory)]
