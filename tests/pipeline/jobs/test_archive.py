"""Archives: each record exactly once, whatever happens. Without Spark."""

import errno
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from odradek.pipeline.jobs import JobError, OvertakenError
from odradek.pipeline.jobs.archive import job
from odradek.pipeline.jobs.archive.job import (
    ArchiveRun,
    ArchiveSettings,
    plan_archive,
    run_archive,
)
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveFiles
from odradek.pipeline.jobs.archive.splitting.json_schema import parse_json_schema
from odradek.pipeline.jobs.archive.table import archive_table
from odradek.pipeline.jobs.archive.table.archive_table import ArchiveTable
from odradek.pipeline.jobs.archive.table.state import (
    ArchivedRange,
    ArchiveState,
    PartitionKey,
    PartitionState,
)
from odradek.pipeline.jobs.offset_spans import Span
from odradek.pipeline.jobs.replay import sending
from odradek.pipeline.jobs.replay.archived import read_archive
from odradek.pipeline.jobs.replay.job import ReplaySettings, plan_replay
from odradek.pipeline.jobs.replay.selection import Selection
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading import range_reader
from odradek.protocol.compression import CompressionType
from odradek.storage.checkpoints import write_offsets
from odradek.storage.filenames import LOG_START_OFFSET_CHECKPOINT, REPLICATION_OFFSET_CHECKPOINT
from odradek.storage.files import OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader
from tests.support.archives import (
    InThisProcess,
    archive_here,
    at,
    data_files,
    logged,
    rows_of,
    seen,
)
from tests.support.crashing_files import QuickFiles
from tests.support.dirty_logs import Writer, clean, end_transaction
from tests.support.log_box import NOW_MS, LogBox, batch_of, put

ANY_TIME = {"message_timestamp_after_max_ms": (1 << 63) - 1}
DAY_MS = 86_400_000
QUICK = QuickFiles()


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "_WAIT_S", 0)


def box_at(root: Path, **more: Any) -> LogBox:
    more = {"segment_bytes": 2000, "segment_index_bytes": 1024, "index_interval_bytes": 200, **more}
    return LogBox(root, files=QUICK, **more)


def written(
    root: Path, seed: int = 1, batches: int = 60, **more: Any
) -> tuple[LogBox, PartitionLog]:
    """A log of several segments with all codecs, transactions, headers and null keys."""
    box = box_at(root / "log", **more)
    log = box.open()
    null_keys = not more
    Writer(seed, codecs=tuple(CompressionType), null_keys=null_keys).write(log, batches)
    return box, log


def write_more(log: PartitionLog, batches: int) -> None:
    """By producers that do not number their records: those of `written` have gone on."""
    Writer(9, producers=False).write(log, batches)


def settings_for(root: Path, **more: Any) -> ArchiveSettings:
    more = {"until_end": True, "max_split_bytes": 1500, **more}
    return ArchiveSettings(log_directories=[root / "log"], archive=at(root / "archive"), **more)


def state_of(settings: ArchiveSettings) -> ArchiveState:
    return ArchiveTable(settings.archive, QUICK).state


def archived(settings: ArchiveSettings) -> list[tuple[Any, ...]]:
    return rows_of(seen(settings.archive))


# -- what gets there -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_an_archive_equals_the_log_record_for_record(tmp_path: Path, seed: int) -> None:
    box, log = written(tmp_path, seed)
    settings = settings_for(tmp_path)
    summary = archive_here(settings, QUICK)
    assert archived(settings) == logged(box.directory)
    assert summary.total().records == len(logged(box.directory))
    assert summary.total().waiting == 0
    (state,) = state_of(settings).partitions.values()
    assert state.covered == (Span(0, log.log_end_offset),)


def test_a_second_run_has_nothing_to_do(tmp_path: Path) -> None:
    written(tmp_path)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    before = ArchiveTable(settings.archive).delta.version()
    summary = archive_here(settings, QUICK)
    assert summary.total().records == 0
    assert ArchiveTable(settings.archive).delta.version() == before == 1


def test_records_of_all_columns_and_uncommitted_ones_on_demand(tmp_path: Path) -> None:
    box, _ = written(tmp_path)
    settings = settings_for(tmp_path, committed_only=False)
    archive_here(settings, QUICK)
    assert archived(settings) == logged(box.directory, committed=False)
    assert len(archived(settings)) > len(logged(box.directory))


def test_the_active_segment_waits_until_it_is_closed(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    settings = settings_for(tmp_path, until_end=False)
    summary = archive_here(settings, QUICK)
    active = int(box.names(".log")[-1].removesuffix(".log"))
    assert archived(settings) == [row for row in logged(box.directory) if row[2] < active]
    assert summary.total().waiting == log.log_end_offset - active
    write_more(log, 60)
    archive_here(settings, QUICK)
    active = int(box.names(".log")[-1].removesuffix(".log"))
    assert archived(settings) == [row for row in logged(box.directory) if row[2] < active]


def test_records_after_the_high_watermark_wait_also_if_a_segment_is_closed(tmp_path: Path) -> None:
    box, _ = written(tmp_path)
    settings = settings_for(tmp_path, until_end=False, committed_only=False)
    *_, segment, active = LogReader(box.directory).segments()
    end = segment.base_offset
    checkpoint = box.directory.parent / REPLICATION_OFFSET_CHECKPOINT
    write_offsets(QUICK, checkpoint, {("orders", 0): end})
    (plan,) = plan_archive(settings, QUICK)
    assert 0 < end < active.base_offset
    assert ([(each.start, each.end) for each in plan.ranges], plan.waiting) == ([(0, end)], 0)
    archive_here(settings, QUICK)
    records = logged(box.directory, committed=False)
    assert archived(settings) == [row for row in records if row[2] < end]
    (plan,) = plan_archive(settings, QUICK)
    assert (plan.ranges, plan.waiting) == ((), 0)


def test_records_of_an_open_transaction_wait_for_its_end(tmp_path: Path) -> None:
    box, log = written(tmp_path, batches=10)
    undecided = batch_of(b"open", producer=(77, 0, 0), is_transactional=True)
    first = log.append(undecided, now_ms=NOW_MS, transaction_verified=True).base_offset
    put(log, b"after")
    settings = settings_for(tmp_path)
    assert archive_here(settings, QUICK).total().waiting == 2
    assert {row[2] for row in archived(settings)} == {
        row[2] for row in logged(box.directory) if row[2] < first
    }


def test_several_partitions_and_topics_get_directories_of_their_own(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    log.close(NOW_MS)
    for name in ("orders-1", "2024-0"):
        shutil.copytree(box.directory, box.directory.with_name(name))
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    expected = [
        row
        for name in ("2024-0", "orders-0", "orders-1")
        for row in logged(box.directory.with_name(name))
    ]
    assert archived(settings) == expected
    assert state_of(settings).counts == {"orders": 2, "2024": 1}


def test_a_choice_of_topics_leaves_the_others_alone(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    log.close(NOW_MS)
    shutil.copytree(box.directory, box.directory.with_name("other-0"))
    archive_here(settings_for(tmp_path, topics=TopicChoice(names=["other"])), QUICK)
    assert {path.parts[-3] for path in data_files(at(tmp_path / "archive"))} == {"topic=other"}


def test_records_lie_by_the_utc_date_of_their_timestamp(tmp_path: Path) -> None:
    box = box_at(tmp_path / "log", segment_bytes=1 << 20, **ANY_TIME)
    log = box.open()
    midnight = 1_700_006_400_000
    stamps = [midnight - 1, midnight, midnight + DAY_MS, midnight - 1, -1, 1 << 60, 0]
    put(log, *[b"%d" % stamp for stamp in stamps], timestamps=stamps)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    by_date = {
        path.parent.name: pq.ParquetFile(path).read()["value"].to_pylist()
        for path in data_files(settings.archive)
    }
    assert by_date == {
        "date=2023-11-14": [b"%d" % (midnight - 1)] * 2,
        "date=2023-11-15": [b"%d" % midnight],
        "date=2023-11-16": [b"%d" % (midnight + DAY_MS)],
        "date=1969-12-31": [b"-1"],
        "date=1970-01-01": [b"0"],
        "date=__HIVE_DEFAULT_PARTITION__": [b"%d" % (1 << 60)],
    }


@pytest.mark.parametrize("schema", [None, parse_json_schema('{"id": "long"}')])
def test_timestamps_that_no_column_can_hold_are_kept(tmp_path: Path, schema: Any) -> None:
    box = box_at(tmp_path / "log", segment_bytes=1 << 20, **ANY_TIME)
    stamps = [NOW_MS, NOW_MS * 1_000_000, (1 << 63) - 1, NOW_MS, 300_000 * 365 * DAY_MS]
    put(box.open(), b'{"id": 1}', b"bad", b'{"id": 2}', b"bad", b"bad", timestamps=stamps)
    settings = settings_for(tmp_path, values=schema, compact=True)
    archive_here(settings, QUICK)
    kept = seen(settings.archive).sort_by("offset")["timestampMs"].to_pylist()
    assert kept == [None, stamps[1], stamps[2], None, stamps[4]]
    replayed = ReplaySettings(archive=settings.archive, client={}, job_id="1", topics=TopicChoice())
    (source,) = plan_replay(replayed).sources.values()
    sent = [row[4] for table in source.tables(0) for row in sending._rows(table, "t", 0)]
    assert sent == stamps
    late = Selection(from_ms=stamps[4])
    found = [late.filter(table)["offset"].to_pylist() for table in source.tables(0)]
    assert [offset for part in found for offset in part] == [1, 2, 4]
    early = Selection(to_ms=stamps[2])
    found = [early.filter(table)["offset"].to_pylist() for table in source.tables(0)]
    assert [offset for part in found for offset in part] == [0, 1, 3, 4]


# -- kills, and second attempts --------------------------------------------------------------------


def test_of_several_attempts_of_a_task_one_counts(tmp_path: Path) -> None:
    box, _ = written(tmp_path)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK, attempts=3)
    assert archived(settings) == logged(box.directory)


class Failing(InThisProcess):
    """Some parts are done, another one fails in the middle of its files, as on a full disk."""

    def run(self, work: Any, items: Any, description: str) -> Any:
        for number, item in enumerate(items[:-1]):
            yield number, list(work(item))
        sync = ArchiveFiles.sync
        try:
            ArchiveFiles.sync = full  # type: ignore[method-assign]
            with suppress(OSError):
                list(work(items[-1]))
        finally:
            ArchiveFiles.sync = sync  # type: ignore[method-assign]
        raise JobError("no space left on device")


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "no space left on device")


def test_a_run_that_fails_leaves_no_files_that_are_in_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, log = written(tmp_path)
    settings = settings_for(tmp_path)

    def files() -> set[Path]:
        return set((tmp_path / "archive").rglob("*.parquet"))

    with pytest.raises(JobError, match="no space left"):
        run_archive(Failing(), settings, files=QUICK)
    assert files() == set(data_files(settings.archive)) != set()
    write_more(log, 5)
    last = put(log, b"old")
    with monkeypatch.context() as patches:
        patches.setattr(ArchiveTable, "append", full)
        with pytest.raises(OSError, match="no space left"):
            archive_here(settings, QUICK)
    assert files() == set(data_files(settings.archive))
    archive_here(settings, QUICK)
    with monkeypatch.context() as patches:
        patches.setattr(ArchiveTable, "merge", full)
        with pytest.raises(OSError, match="no space left"):
            archive_here(replace(settings, compact=True), QUICK)
    assert files() == set(data_files(settings.archive))
    log.truncate_to(last, NOW_MS)
    put(log, b"new")
    with monkeypatch.context() as patches:
        patches.setattr(ArchiveTable, "_write", full)
        patches.setattr(archive_table, "_RETRY_S", 0)
        (problem,) = archive_here(settings, QUICK).problems
    assert "no space left" in problem  # of the repair
    assert files() == set(data_files(settings.archive))
    archive_here(settings, QUICK)
    assert archived(settings) == logged(box.directory)


def test_a_failed_run_keeps_the_files_that_it_has_committed_and_another_has_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    settings = settings_for(tmp_path)
    monkeypatch.setattr(job, "_COMMIT_EVERY_S", 0)

    class Merging(InThisProcess):
        def run(self, work: Any, items: Any, description: str) -> Any:
            for number, item in enumerate(items[:-1]):
                yield number, list(work(item))
            before.extend(data_files(settings.archive))
            ArchiveRun(InThisProcess(), settings, files=QUICK).compact()
            raise JobError("no space left on device")

    before: list[Path] = []
    with pytest.raises(JobError, match="no space left"):
        run_archive(Merging(), settings, files=QUICK)
    assert len(data_files(settings.archive)) < len(before)
    assert all(path.exists() for path in before)


# -- logs that live on -----------------------------------------------------------------------------


class Meanwhile(InThisProcess):
    """Something happens after a run was planned, before its first task."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens = happens

    def run(self, *arguments: Any) -> Any:
        self._happens()
        return super().run(*arguments)


def test_records_deleted_during_a_run_are_reported_once(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    settings = settings_for(tmp_path)
    expected = logged(box.directory)
    summary = run_archive(
        Meanwhile(lambda: log.delete_first_segments(3, NOW_MS)), settings, files=QUICK
    )
    start = log.log_start_offset
    assert start > 0
    assert archived(settings) == [row for row in expected if row[2] >= start]
    assert summary.total().lost == start
    assert summary.lost[-1].endswith(f"to {start - 1}")
    again = archive_here(settings, QUICK)
    assert (again.lost, again.total().records) == ([], 0)


class AfterReading(InThisProcess):
    """Something happens when all tasks of a run have ended, before the first commit."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self._happens = happens

    def run(self, *arguments: Any) -> Any:
        results = list(super().run(*arguments))
        self._happens()
        yield from results


def test_what_one_run_has_read_is_not_lost_because_another_finds_it_deleted(
    tmp_path: Path,
) -> None:
    box, log = written(tmp_path, batches=20)
    settings = settings_for(tmp_path, until_end=False)
    archive_here(settings, QUICK)
    write_more(log, 60)
    active = int(box.names(".log")[-1].removesuffix(".log"))
    expected = [row for row in logged(box.directory) if row[2] < active]

    def deleted() -> None:
        log.delete_first_segments(len(box.names(".log")) - 1, NOW_MS)
        assert len(archive_here(settings, QUICK).lost) == 1

    run_archive(AfterReading(deleted), settings, files=QUICK)
    assert archived(settings) == expected
    (state,) = state_of(settings).partitions.values()
    assert (state.covered, state.lost) == ((Span(0, active),), ())


@pytest.mark.parametrize("max_split_bytes", [1, 1 << 20])
def test_a_run_that_is_overtaken_archives_what_the_other_found_deleted(
    tmp_path: Path, max_split_bytes: int
) -> None:
    box, log = written(tmp_path, batches=20)
    settings = settings_for(tmp_path, until_end=False, max_split_bytes=max_split_bytes)
    archive_here(settings, QUICK)
    write_more(log, 30)
    active = int(box.names(".log")[-1].removesuffix(".log"))
    expected = [row for row in logged(box.directory) if row[2] < active]

    def half_deleted() -> None:
        log.delete_first_segments(len(box.names(".log")) - 2, NOW_MS)
        (lost,) = archive_here(settings, QUICK).lost
        assert lost.endswith(f"to {log.log_start_offset - 1}")
        assert log.log_start_offset < active

    with pytest.raises(OvertakenError) as caught:
        run_archive(AfterReading(half_deleted), settings, files=QUICK)
    assert f"it has archived orders-0, offsets {log.log_start_offset} to" in str(caught.value)
    assert archived(settings) == expected
    (state,) = state_of(settings).partitions.values()
    assert (state.covered, state.lost) == ((Span(0, active),), ())


def test_a_run_archives_what_it_alone_has_read_in_one_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = box_at(tmp_path / "log").open()
    schema = parse_json_schema('{"id": "long"}')
    settings = settings_for(tmp_path, values=schema, max_split_bytes=1 << 20)
    values = [b"[]" if offset % 5 else b'{"id": 1}' for offset in range(60)]
    put(log, *values[:10])
    archive_here(settings, QUICK)
    for value in values[10:]:
        put(log, value)
    (key,) = state_of(settings).partitions
    others = [Span(40, 50), Span(20, 30)]
    commit, versions = DeltaTable.create_write_transaction, []

    def overtaken(*arguments: Any, **options: Any) -> None:
        if others:
            archived = ArchivedRange(key, *others.pop())
            with monkeypatch.context() as patches:
                patches.setattr(DeltaTable, "create_write_transaction", commit)
                table = ArchiveTable(settings.archive, QUICK)
                table.append([], lambda state: state.with_ranges([archived]))
            versions.append(table.delta.version())
        commit(*arguments, **options)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", overtaken)
    run = ArchiveRun(InThisProcess(), settings, files=QUICK)
    with pytest.raises(OvertakenError, match="offsets 20 to 29, at the same time"):
        run.read()
    assert DeltaTable(settings.archive.uri).version() == versions[-1] + 1
    alone = [row for row in logged(log.directory) if row[2] // 10 not in (2, 4)]
    assert archived(settings) == alone
    (state,) = state_of(settings).partitions.values()
    assert (state.covered, state.lost) == ((Span(0, 60),), ())
    total = run.summary.total()
    assert (total.records, total.dead_letters) == (6, 24)
    again = archive_here(settings, QUICK)
    assert (again.total().records, again.repaired) == (0, [])


def test_what_another_run_has_archived_is_not_lost() -> None:
    key = PartitionKey(topic="orders", topic_id="", partition=0)
    state = PartitionState(of=key).with_range(ArchivedRange(key, 0, 10))
    lost = ArchivedRange(key, 5, 20, lost=(Span(5, 20),))
    state = state.with_range(lost)
    assert (state.covered, state.lost) == ((Span(0, 20),), (Span(10, 20),))
    with pytest.raises(OvertakenError):
        state.with_range(ArchivedRange(key, 9, 12))
    state = state.with_range(ArchivedRange(key, 10, 15))
    assert state.lost == (Span(15, 20),)
    with pytest.raises(OvertakenError):
        state.with_range(ArchivedRange(key, 14, 20))


def test_records_deleted_between_runs_are_reported_once(tmp_path: Path) -> None:
    box, log = written(tmp_path, batches=20)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    end = log.log_end_offset
    first = archived(settings)
    write_more(log, 60)
    log.delete_first_segments(len(box.names(".log")) - 2, NOW_MS)
    assert log.log_start_offset > end
    summary = archive_here(settings, QUICK)
    assert summary.lost == [f"orders-0: offsets {end} to {log.log_start_offset - 1}"]
    assert archived(settings) == first + logged(box.directory)
    assert archive_here(settings, QUICK).lost == []
    (note,) = read_archive(settings.archive, TopicChoice(), Selection(), QUICK).notes
    assert note.startswith(f"orders-0: offsets {end} to {log.log_start_offset - 1} are left out")


def test_records_deleted_before_the_first_run_are_not_lost(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    log.delete_first_segments(2, NOW_MS)
    settings = settings_for(tmp_path)
    assert archive_here(settings, QUICK).lost == []
    assert archived(settings) == logged(box.directory)


def test_offsets_that_log_compaction_has_left_empty_are_counted(tmp_path: Path) -> None:
    box, log = written(tmp_path, cleanup_policy=("compact",))
    end = log.log_end_offset
    clean(log, NOW_MS + 10**9)
    settings = settings_for(tmp_path)
    summary = archive_here(settings, QUICK)
    rows = archived(settings)
    assert rows == logged(box.directory)
    assert summary.total().absent == end - len(rows) > 0


def test_a_recreated_topic_is_archived_from_its_start(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    log.assign_topic_id(b"a" * 16)
    log.close(NOW_MS)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    first = archived(settings)
    shutil.rmtree(box.directory)
    log = box.open()
    log.assign_topic_id(b"b" * 16)
    write_more(log, 60)
    archive_here(settings, QUICK)
    assert sorted(archived(settings), key=repr) == sorted(first + logged(box.directory), key=repr)


def test_a_topic_that_is_recreated_with_fewer_partitions_is_replayed_with_as_many(
    tmp_path: Path,
) -> None:
    box, log = written(tmp_path, batches=5)
    log.assign_topic_id(b"a" * 16)
    log.close(NOW_MS)
    shutil.copytree(box.directory, box.directory.with_name("orders-1"))
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    shutil.rmtree(tmp_path / "log")
    log = box.open()
    log.assign_topic_id(b"b" * 16)
    write_more(log, 5)
    archive_here(settings, QUICK)
    replayed = ReplaySettings(archive=settings.archive, client={}, job_id="1", topics=TopicChoice())
    assert plan_replay(replayed).partitions == {"orders": 1}


@pytest.mark.parametrize("damaged", [b"version: 0\ntopic_id: ?\n", None])
def test_a_topic_whose_id_is_gone_is_not_archived_as_another(
    tmp_path: Path, damaged: bytes | None
) -> None:
    box, log = written(tmp_path, batches=20)
    log.assign_topic_id(b"a" * 16)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    path = box.directory / "partition.metadata"
    sound = path.read_bytes()
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged)
    write_more(log, 20)
    (problem,) = archive_here(settings, QUICK).problems
    assert problem.startswith("orders-0: partition.metadata is missing or damaged")
    path.write_bytes(sound)
    archive_here(settings, QUICK)
    assert archived(settings) == logged(box.directory)


def test_a_topic_whose_id_becomes_known_later_is_read_on(tmp_path: Path) -> None:
    box, log = written(tmp_path, batches=20)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    log.assign_topic_id(b"a" * 16)
    write_more(log, 20)
    added = box.directory.with_name("orders-1")
    shutil.copytree(box.directory, added)
    archive_here(settings, QUICK)
    assert archived(settings) == logged(box.directory) + logged(added)
    assert len(state_of(settings).newest("orders")) == 2


def test_a_topic_with_an_id_is_another_than_one_without_if_its_records_are_others(
    tmp_path: Path,
) -> None:
    box, log = written(tmp_path, batches=20)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    first = archived(settings)
    log.close(NOW_MS)
    shutil.rmtree(box.directory)
    log = box.open()
    log.assign_topic_id(b"b" * 16)
    write_more(log, 60)
    archive_here(settings, QUICK)
    assert sorted(archived(settings), key=repr) == sorted(first + logged(box.directory), key=repr)


def test_a_log_that_ends_before_the_plan_is_continued_by_the_next_run(tmp_path: Path) -> None:
    box = box_at(tmp_path / "log")
    log = box.open()
    write_more(log, 60)
    log.close(NOW_MS)
    last = box.names(".log")[-1].removesuffix(".log")

    def cut() -> None:
        for path in box.directory.glob(f"{last}.*"):
            path.unlink()

    settings = settings_for(tmp_path)
    summary = run_archive(Meanwhile(cut), settings, files=QUICK)
    assert summary.lost == []
    assert f"the log is read up to offset {int(last)} now" in summary.notes[0]
    log = box.open()
    for _ in range(10):
        put(log, *[b"new"] * 30)
    archive_here(settings, QUICK)
    assert archived(settings) == logged(box.directory)


def test_records_before_one_whose_marker_is_gone_are_archived_by_the_next_run(
    tmp_path: Path,
) -> None:
    """All are in one piece, in which a transaction cannot be decided any more."""
    box = box_at(tmp_path / "log", segment_bytes=1 << 20)
    log = box.open()
    put(log, *[b"before"] * 5)
    transaction = batch_of(b"undecided", producer=(1, 0, 0), is_transactional=True)
    log.append(transaction, now_ms=NOW_MS, transaction_verified=True)
    end_transaction(log, 1, 0, commit=True)
    settings = settings_for(tmp_path)
    summary = run_archive(Meanwhile(lambda: log.truncate_to(6, NOW_MS)), settings, files=QUICK)
    assert "the log is read up to offset 0 now, not up to 7" in summary.notes[0]
    archive_here(settings, QUICK)
    assert [row[2] for row in archived(settings)] == [0, 1, 2, 3, 4]
    end_transaction(log, 1, 0, commit=True)
    archive_here(settings, QUICK)
    assert [row[2] for row in archived(settings)] == [0, 1, 2, 3, 4, 5]


def test_a_damaged_batch_stops_only_its_own_range(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    log.close(NOW_MS)
    expected = logged(box.directory)
    path = box.directory / box.names(".log")[2]
    sound = path.read_bytes()
    damaged = bytearray(sound)
    damaged[-3] ^= 1
    path.write_bytes(damaged)
    settings = settings_for(tmp_path)
    summary = archive_here(settings, QUICK)
    assert "stored CRC" in summary.problems[0]
    assert 0 < len(archived(settings)) < len(expected)
    assert set(archived(settings)) < set(expected)
    gap, after = (state_of(settings).newest("orders")[0].covered[number] for number in (0, 1))
    replayed = ReplaySettings(archive=settings.archive, client={}, job_id="1", topics=TopicChoice())
    with pytest.raises(JobError, match=f"offsets {gap.end} to {after.start - 1} are not archived"):
        plan_replay(replayed)
    plan_replay(replace(replayed, selection=Selection(to_offset=gap.end)))
    path.write_bytes(sound)
    assert archive_here(settings, QUICK).problems == []
    assert archived(settings) == expected


def replay_of(settings: ArchiveSettings, **selection: int) -> ReplaySettings:
    return ReplaySettings(
        archive=settings.archive,
        client={},
        job_id="1",
        topics=TopicChoice(),
        selection=Selection(**selection),
    )


class UnreadableFiles(QuickFiles):
    """The disk does not return the content of one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self, path: Path, **how: Any) -> OpenFile:
        if path == self._path:
            raise OSError(errno.EIO, "Input/output error", str(path))
        return super().open(path, **how)


@pytest.mark.parametrize("segment", [0, 2, -1])
def test_a_file_that_the_disk_does_not_return_stops_only_what_is_in_it(
    tmp_path: Path, segment: int
) -> None:
    box, log = written(tmp_path)
    log.close(NOW_MS)
    other = box.directory.with_name("zebra-0")
    shutil.copytree(box.directory, other)
    path = box.directory / box.names(".log")[segment]
    settings = settings_for(tmp_path, skip_unreadable=True)
    summary = archive_here(settings, UnreadableFiles(path))
    assert f"orders-0: [Errno 5] Input/output error: '{path}'" in summary.problems
    assert summary.skipped == []
    expected = logged(box.directory) + logged(other)
    there = archived(settings)
    assert set(logged(other)) <= set(there) < set(expected)
    assert segment == -1 or len(there) > len(logged(other))
    archive_here(settings, QUICK)
    assert archived(settings) == expected


def test_offsets_that_are_missing_at_the_beginning_are_not_left_out(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    damage(box.directory / box.names(".log")[0], 70)
    settings = settings_for(tmp_path)
    assert len(archive_here(settings, QUICK).problems) == 1
    (span,) = state_of(settings).newest("orders")[0].covered
    assert span.start > 0
    with pytest.raises(JobError, match=f"offsets 0 to {span.start - 1} are not archived"):
        plan_replay(replay_of(settings))
    plan_replay(replay_of(settings, from_offset=span.start))
    log.delete_first_segments(1, NOW_MS)
    summary = archive_here(settings, QUICK)
    assert summary.lost == [f"orders-0: offsets 0 to {span.start - 1}"]
    (note,) = plan_replay(replay_of(settings)).notes
    assert note.startswith(f"orders-0: offsets 0 to {span.start - 1} are left out")
    assert archive_here(settings, QUICK).lost == []


def test_parts_after_one_that_a_killed_run_has_not_committed_are_not_replayed_alone(
    tmp_path: Path,
) -> None:
    box, _ = written(tmp_path)
    settings = settings_for(tmp_path)
    run = ArchiveRun(LastPartFirst(), settings, files=QUICK)
    with pytest.raises(InterruptedError):
        run.read()
    (span,) = state_of(settings).newest("orders")[0].covered
    assert span.start > 0
    with pytest.raises(JobError, match=f"offsets 0 to {span.start - 1} are not archived"):
        plan_replay(replay_of(settings))
    archive_here(settings, QUICK)
    plan_replay(replay_of(settings))
    assert archived(settings) == logged(box.directory)


class LastPartFirst(InThisProcess):
    """Ends after the last part."""

    def run(self, work: Any, items: Any, description: str) -> Any:
        yield len(items) - 1, list(work(items[-1]))
        raise InterruptedError


def test_a_state_of_an_earlier_version_learns_where_the_log_begins(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    settings = settings_for(tmp_path)
    with pytest.raises(InterruptedError):
        ArchiveRun(LastPartFirst(), settings, files=QUICK).read()
    table = ArchiveTable(settings.archive, QUICK)
    (known,) = table.state.partitions.values()
    earlier = msgspec.structs.replace(known, log_start=None)
    table.append([], lambda state: state.with_partition(earlier))
    assert b"log_start" not in table.state.encoded("id", 0)
    plan_replay(replay_of(settings))  # there is no sign of what is missing
    write_more(log, 5)
    with pytest.raises(InterruptedError):
        ArchiveRun(LastPartFirst(), settings, files=QUICK).read()
    with pytest.raises(JobError, match=f"offsets 0 to {known.start - 1} are not archived"):
        plan_replay(replay_of(settings))
    archive_here(settings, QUICK)
    assert archived(settings) == logged(box.directory)


def damage(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("damages_headers", [False, True])
def test_what_cannot_be_read_is_skipped_on_demand_and_named(
    tmp_path: Path, damages_headers: bool
) -> None:
    """A batch whose header cannot be read takes the rest of its segment with it."""
    box = box_at(tmp_path / "log")
    log = box.open()
    Writer(1, codecs=tuple(CompressionType), producers=not damages_headers).write(log, 90)
    log.close(NOW_MS)
    expected = logged(box.directory)
    reader = LogReader(box.directory)
    segments = reader.segments()
    gone: list[Span] = []
    for segment, following in pairwise(segments[1:5]):
        batches = [each for each in reader.headers(segment) if not each[1].is_control]
        position, header = batches[len(batches) // 2]
        end = following.base_offset if damages_headers else header.next_offset
        gone.append(Span(header.base_offset, end))
        damage(segment.path, position + (8 if damages_headers else header.size_bytes - 1))
    settings = settings_for(tmp_path, skip_unreadable=True, max_split_bytes=1 << 20)
    summary = archive_here(settings, QUICK)
    assert summary.problems == []
    named = [each.split(": ")[1] for each in summary.skipped]
    assert named == [f"offsets {start} to {end - 1}" for start, end in gone]
    assert summary.total().skipped == sum(span.size for span in gone)
    kept = [row for row in expected if not any(each.start <= row[2] < each.end for each in gone)]
    assert archived(settings) == kept
    (state,) = state_of(settings).partitions.values()
    assert state.skipped == tuple(gone)
    assert state.covered == (Span(0, log.log_end_offset),)
    again = archive_here(settings, QUICK)
    assert (again.skipped, again.total().records) == ([], 0)
    notes = read_archive(settings.archive, TopicChoice(), Selection(), QUICK).notes
    assert [each.split(" are")[0] for each in notes] == [f"orders-0: {each}" for each in named]


def batches_of_three(root: Path) -> tuple[list[tuple[Any, ...]], Path, int]:
    """The records of a log of one segment, its file, and where the batch at offset 6 begins."""
    box = box_at(root / "log", segment_bytes=1 << 20)
    log = box.open()
    for _ in range(6):
        put(log, b"a", b"b", b"c")
    log.close(NOW_MS)
    reader = LogReader(box.directory)
    (segment,) = reader.segments()
    position, _ = list(reader.headers(segment))[2]
    return logged(box.directory), segment.path, position


def test_batches_before_a_damaged_one_do_not_wait(tmp_path: Path) -> None:
    records, path, position = batches_of_three(tmp_path)
    damage(path, position + 70)
    settings = settings_for(tmp_path)
    for _ in range(2):
        (problem,) = archive_here(settings, QUICK).problems
        assert "the batch at offset 6: stored CRC" in problem
        assert archived(settings) == records[:6]
    damage(path, position + 70)
    assert archive_here(settings, QUICK).problems == []
    assert archived(settings) == records


@pytest.mark.parametrize("last_offset_delta", [0, (1 << 31) - 1])
def test_a_batch_that_is_skipped_ends_where_the_next_begins_whatever_its_header_says(
    tmp_path: Path, last_offset_delta: int
) -> None:
    records, path, position = batches_of_three(tmp_path)
    data = bytearray(path.read_bytes())
    data[position + 23 : position + 27] = last_offset_delta.to_bytes(4, "big")
    path.write_bytes(data)
    settings = settings_for(tmp_path, skip_unreadable=True)
    summary = archive_here(settings, QUICK)
    assert summary.problems == []
    assert [each.split(": ")[1] for each in summary.skipped] == ["offsets 6 to 8"]
    assert archived(settings) == records[:6] + records[9:]


@pytest.mark.parametrize("skips", [False, True])
def test_a_damaged_batch_in_which_the_log_begins_is_not_passed_over(
    tmp_path: Path, skips: bool
) -> None:
    """Its own header says that it ends before the records that are wanted."""
    records, path, position = batches_of_three(tmp_path)
    data = bytearray(path.read_bytes())
    data[position + 23 : position + 27] = bytes(4)
    path.write_bytes(data)
    write_offsets(QUICK, path.parents[1] / LOG_START_OFFSET_CHECKPOINT, {("orders", 0): 7})
    settings = settings_for(tmp_path, skip_unreadable=skips)
    summary = archive_here(settings, QUICK)
    if skips:
        assert [each.split(": ")[1] for each in summary.skipped] == ["offsets 7 to 8"]
        assert archived(settings) == records[9:]
    else:
        assert "the batch at offset 6: stored CRC" in summary.problems[0]
        assert archived(settings) == []


# -- compaction of small files ---------------------------------------------------------------------


def test_small_files_become_one_with_the_same_records(tmp_path: Path) -> None:
    box, _ = written(tmp_path)
    archive_here(settings_for(tmp_path), QUICK)
    settings = settings_for(tmp_path, compact=True)
    assert len(data_files(settings.archive)) > 3
    summary = archive_here(settings, QUICK)
    dates = {path.parent for path in data_files(settings.archive)}
    assert len(data_files(settings.archive)) == len(dates) < 3
    assert summary.total().merged_files > 2
    assert archived(settings) == logged(box.directory)
    assert archive_here(settings, QUICK).total().merged_files == 0


def test_a_topic_of_which_nothing_is_archived_yet_has_no_files_to_merge(tmp_path: Path) -> None:
    box_at(tmp_path / "log").open()
    choice = TopicChoice(names=["orders"])
    summary = archive_here(settings_for(tmp_path, topics=choice, compact=True), QUICK)
    assert summary.total().records == 0


def test_files_of_earlier_versions_are_kept_for_their_readers(tmp_path: Path) -> None:
    box, _ = written(tmp_path)
    archive_here(settings_for(tmp_path), QUICK)
    settings = settings_for(tmp_path, compact=True)
    before = data_files(settings.archive)
    version = ArchiveTable(settings.archive).delta.version()
    archive_here(settings, QUICK)
    assert not set(before) & set(data_files(settings.archive))
    assert all(path.exists() for path in before)
    earlier = DeltaTable(settings.archive.uri, version=version).to_pyarrow_table()
    assert rows_of(earlier) == logged(box.directory)


# -- the state -------------------------------------------------------------------------------------


def test_a_plan_writes_nothing(tmp_path: Path) -> None:
    _, log = written(tmp_path)
    settings = settings_for(tmp_path)
    (plan,) = plan_archive(settings)
    assert [(each.start, each.end) for each in plan.ranges] == [(0, log.log_end_offset)]
    assert plan.size_bytes > 0
    assert not (tmp_path / "archive").exists()


def test_a_state_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    written(tmp_path)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    (path,) = (tmp_path / "archive" / "_odradek").iterdir()
    path.write_bytes(path.read_bytes().replace(b'"end":', b'"ens":'))
    with pytest.raises(JobError, match=f"{path.name} was changed or damaged"):
        plan_archive(settings)
    path.unlink()
    with pytest.raises(JobError, match=f"lacks _odradek/{path.name}"):
        archive_here(settings, QUICK)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"{}", "is not the state"), (b"not json", "is not the state"), (b"9", "has format 9")],
)
def test_a_state_of_another_format_is_refused(content: bytes, reason: str) -> None:
    if content == b"9":
        content = ArchiveState().encoded("id", 0).replace(b'"format":3', b'"format":9')
    with pytest.raises(JobError, match=f"PLACE {reason}"):
        ArchiveState.decoded(content, "PLACE")


def test_a_log_without_segments_has_lost_its_checkpointed_records(tmp_path: Path) -> None:
    box, log = written(tmp_path)
    settings = settings_for(tmp_path)
    archive_here(settings, QUICK)
    end = log.log_end_offset
    log.close(NOW_MS)
    for path in box.directory.iterdir():
        path.unlink()
    noted = box.directory.parent / LOG_START_OFFSET_CHECKPOINT
    write_offsets(QUICK, noted, {("orders", 0): end + 7})
    (plan,) = plan_archive(settings, QUICK)
    assert plan.problem == ""
    assert plan.ranges == ()
    assert [lost.lost for lost in plan.lost] == [(Span(end, end + 7),)]
