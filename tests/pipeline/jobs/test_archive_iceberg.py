"""Archives that Iceberg readers can read: each record once, as PyIceberg sees it."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

pytest.importorskip("pyiceberg")

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.job import ArchiveSettings
from odradek.pipeline.jobs.archive.parquet.storage import ArchiveLocation
from odradek.pipeline.jobs.archive.table import iceberg_copy
from odradek.storage.files import OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader
from tests.pipeline.jobs.test_following import Followed
from tests.support.archives import (
    archive_here,
    at,
    logged,
    rows_of,
    seen,
    small_segments,
    write_more,
)
from tests.support.crashing_files import CrashedError, QuickFiles
from tests.support.log_box import NOW_MS, LogBox, put

QUICK = QuickFiles()


def settings_for(root: Path, **more: Any) -> ArchiveSettings:
    more = {"until_end": True, "max_split_bytes": 600, **more}
    return ArchiveSettings(
        log_directories=[root / "log"],
        archive=at(root / "archive"),
        iceberg_catalog=root / "catalog.db",
        **more,
    )


def written(root: Path, batches: int) -> tuple[LogBox, PartitionLog]:
    box = small_segments(root)
    log = box.open()
    write_more(log, batches)
    return box, log


def table_in(root: Path) -> Table:
    catalog = SqlCatalog("odradek", uri=f"sqlite:///{root / 'catalog.db'}")
    table = catalog.load_table("archives.archive")
    catalog.close()
    return table


def read(root: Path) -> list[Any]:
    return rows_of(table_in(root).scan().to_arrow())


def all_are_the_same(root: Path, box: LogBox) -> bool:
    return read(root) == rows_of(seen(at(root / "archive"))) == logged(box.directory)


def test_iceberg_readers_see_each_record_once_after_each_run_and_merge(tmp_path: Path) -> None:
    box, log = written(tmp_path, 20)
    archive_here(settings_for(tmp_path), QUICK)
    assert all_are_the_same(tmp_path, box)
    write_more(log, 20)
    archive_here(settings_for(tmp_path), QUICK)
    assert all_are_the_same(tmp_path, box)
    assert archive_here(settings_for(tmp_path, compact=True), QUICK).total().merged_files > 5
    assert all_are_the_same(tmp_path, box)
    assert read(tmp_path)[-1][2] > 50
    after = table_in(tmp_path).scan(row_filter="topic = 'orders' and offset >= 50").to_arrow()
    assert rows_of(after) == [row for row in logged(box.directory) if row[2] >= 50]
    assert table_in(tmp_path).scan(row_filter="date = '1999-01-01'").to_arrow().num_rows == 0


def test_a_repair_and_other_writers_changes_are_followed(tmp_path: Path) -> None:
    box, log = written(tmp_path, 12)
    archive_here(settings_for(tmp_path), QUICK)
    log.truncate_to(list(LogReader(box.directory).batches())[-3].header.base_offset, NOW_MS)
    write_more(log, 12)
    assert len(archive_here(settings_for(tmp_path), QUICK).repaired) == 1
    assert all_are_the_same(tmp_path, box)
    delta = DeltaTable(str(tmp_path / "archive"))
    delta.optimize.compact()
    delta.delete('"offset" < 5')
    archive_here(settings_for(tmp_path, accept_changes=True), QUICK)
    # Not `to_arrow`: deltalake has written files with another type of Arrow for the same columns.
    found = table_in(tmp_path).scan().to_arrow_batch_reader().read_all()
    assert rows_of(found) == [row for row in logged(box.directory) if row[2] >= 5]


def test_fields_of_values_become_columns_later(tmp_path: Path) -> None:
    box = small_segments(tmp_path)
    log = box.open()
    put(log, b'{"id": 1}')
    archive_here(settings_for(tmp_path), QUICK)
    put(
        log,
        b'{"id": 2, "at": "2026-11-28T00:00:00Z", "tags": [{"n": "a"}], "few": 3, "price": 1.5}',
    )
    kinds = pa.struct(
        [
            pa.field("id", pa.int64()),
            pa.field("at", pa.timestamp("us", tz="UTC")),
            pa.field(
                "tags", pa.list_(pa.field("element", pa.struct([pa.field("n", pa.string())])))
            ),
            pa.field("few", pa.int8()),
            pa.field("price", pa.decimal128(9, 2)),
        ]
    )
    archive_here(settings_for(tmp_path, values=kinds), QUICK)
    assert all_are_the_same(tmp_path, box)
    names = [*(field.name for field in kinds), "error"]
    by_offset = [("offset", "ascending")]
    found = table_in(tmp_path).scan().to_arrow().sort_by(by_offset).select(names)
    assert found["id"].to_pylist() == [None, 2]
    assert found.slice(1).to_pylist() == (
        seen(at(tmp_path / "archive")).sort_by(by_offset).select(names).slice(1).to_pylist()
    )


def test_timestamps_outside_all_years_have_no_date_in_iceberg_either(tmp_path: Path) -> None:
    box = LogBox(tmp_path / "log", files=QUICK, message_timestamp_after_max_ms=2**63 - 1)
    log = box.open()
    put(log, b"odd", timestamps=[2**63 - 1])
    archive_here(settings_for(tmp_path), QUICK)
    found = table_in(tmp_path).scan().to_arrow().select(["value", "date", "timestampMs"])
    assert found.to_pylist() == [{"value": b"odd", "date": None, "timestampMs": 2**63 - 1}]


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("what", ["create", "append", "merge"])
def test_killed_before_or_after_a_commit_of_the_catalog_the_next_run_catches_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, made: bool
) -> None:
    box, log = written(tmp_path, 20)
    if what != "create":
        archive_here(settings_for(tmp_path), QUICK)
        write_more(log, 20)
    if what == "merge":
        archive_here(settings_for(tmp_path), QUICK)
    commit = SqlCatalog.commit_table

    def killed(*arguments: Any) -> None:
        if made:
            commit(*arguments)
        raise CrashedError

    monkeypatch.setattr(SqlCatalog, "commit_table", killed)
    with pytest.raises(CrashedError):
        archive_here(settings_for(tmp_path, compact=what == "merge"), QUICK)
    monkeypatch.undo()
    archive_here(settings_for(tmp_path), QUICK)
    assert all_are_the_same(tmp_path, box)


def during_next_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    commit = SqlCatalog.commit_table

    def counted(*arguments: Any) -> Any:
        monkeypatch.undo()
        act()
        return commit(*arguments)

    monkeypatch.setattr(SqlCatalog, "commit_table", counted)


def test_of_two_runs_at_once_neither_adds_a_file_twice_or_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, log = written(tmp_path, 20)
    archive_here(settings_for(tmp_path), QUICK)
    write_more(log, 20)

    def second() -> None:
        write_more(log, 20)
        archive_here(settings_for(tmp_path, compact=True), QUICK)

    during_next_commit(monkeypatch, second)
    assert archive_here(settings_for(tmp_path), QUICK).problems == []
    assert all_are_the_same(tmp_path, box)


def test_a_catalog_that_fails_is_a_problem_of_a_run_that_has_archived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, log = written(tmp_path, 20)
    archive_here(settings_for(tmp_path), QUICK)
    write_more(log, 20)

    def failing(*_: Any) -> None:
        raise CommitFailedException("another process was first")

    monkeypatch.setattr(SqlCatalog, "commit_table", failing)
    for _ in range(2):  # the second run begins with a catalog that is of an earlier version
        (problem,) = archive_here(settings_for(tmp_path), QUICK).problems
        assert "catalog.db: another process was first" in problem
        assert "\n" not in problem
        write_more(log, 20)
    monkeypatch.undo()
    archived = rows_of(seen(at(tmp_path / "archive")))
    assert archived == logged(box.directory)[: len(archived)] != read(tmp_path)
    archive_here(settings_for(tmp_path), QUICK)
    assert all_are_the_same(tmp_path, box)


def test_a_table_that_is_kept_up_to_date_is_so_in_iceberg_too(tmp_path: Path) -> None:
    box = LogBox(tmp_path / "log", files=QUICK)
    log = box.open()
    followed = Followed(tmp_path, round_s=5, merge_s=20)
    followed.settings = settings_for(tmp_path)
    seen_by_round: list[int] = []

    def write() -> None:
        seen_by_round.append(len(read(tmp_path)))
        put(log, b"another")

    followed.follow(*[write] * 12)
    assert seen_by_round == list(range(12))
    assert [each.error for each in followed.rounds] == [""] * 13
    assert all(not each.summary.problems for each in followed.rounds)
    archive_here(settings_for(tmp_path), QUICK)
    assert all_are_the_same(tmp_path, box)


class Recording(QuickFiles):
    """Remembers what was synced."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: set[Path] = set()

    def fsync(self, file: OpenFile) -> None:
        self.synced.add(file.path)


def test_what_the_catalog_names_is_synced_before(tmp_path: Path) -> None:
    """So a power cut cannot leave a list of files that is empty."""
    written(tmp_path, 4)
    files = Recording()
    archive_here(settings_for(tmp_path), files)
    assert set((tmp_path / "catalog.db-metadata" / "archive").iterdir()) <= files.synced


def test_old_snapshots_and_their_files_are_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, log = written(tmp_path, 4)
    for _ in range(4):
        write_more(log, 2)
        archive_here(settings_for(tmp_path), QUICK)
    metadata = tmp_path / "catalog.db-metadata" / "archive"
    many = len(list(metadata.iterdir()))
    table = table_in(tmp_path)
    oldest = min(table.snapshots(), key=lambda each: each.timestamp_ms).snapshot_id
    table.manage_snapshots().create_tag(oldest, "begin").commit()
    monkeypatch.setattr(iceberg_copy, "_MAX_SNAPSHOTS", 2)
    archive_here(settings_for(tmp_path, compact=True), QUICK)
    assert len(table_in(tmp_path).snapshots()) == 3
    assert len(list(metadata.iterdir())) >= many  # all are new: a reader may need them
    monkeypatch.setattr(iceberg_copy, "_UNUSED_AGE_MS", -10_000)
    archive_here(settings_for(tmp_path, compact=True), QUICK)
    assert len(list(metadata.glob("snap-*"))) == 3
    assert all_are_the_same(tmp_path, box)


def test_a_table_that_is_not_this_archives_copy_is_refused(tmp_path: Path) -> None:
    box, log = written(tmp_path, 4)
    archive_here(settings_for(tmp_path), QUICK)
    shutil.rmtree(tmp_path / "archive")
    with pytest.raises(
        JobError, match=r"archives\.archive of .* is not that of this archive: drop"
    ):
        archive_here(settings_for(tmp_path), QUICK)
    (tmp_path / "catalog.db").unlink()
    archive_here(settings_for(tmp_path), QUICK)
    assert all_are_the_same(tmp_path, box)
    table = table_in(tmp_path)
    table.delete("offset = 1")
    write_more(log, 1)
    with pytest.raises(JobError, match="was changed by another writer: drop it"):
        archive_here(settings_for(tmp_path), QUICK)


def test_an_archive_older_than_its_copy_is_refused(tmp_path: Path) -> None:
    _, log = written(tmp_path, 4)
    archive_here(settings_for(tmp_path), QUICK)
    shutil.copytree(tmp_path / "archive", tmp_path / "older")
    write_more(log, 4)
    archive_here(settings_for(tmp_path), QUICK)
    shutil.rmtree(tmp_path / "archive")
    (tmp_path / "older").rename(tmp_path / "archive")
    with pytest.raises(JobError, match="is that of a later version of the archive"):
        archive_here(settings_for(tmp_path), QUICK)


def test_a_place_that_cannot_be_a_catalog_is_refused_before_anything_is_done(
    tmp_path: Path,
) -> None:
    written(tmp_path, 4)
    (tmp_path / "text").write_text("no database, but long enough to be read as the header of one")
    for place, why in {
        "archive/catalog.db": "must not be in the archive",
        "text": "not a database",
        "missing/catalog.db": "unable to open database file",
    }.items():
        with pytest.raises(JobError, match=why) as failure:
            archive_here(
                ArchiveSettings(
                    log_directories=[tmp_path / "log"],
                    archive=at(tmp_path / "archive"),
                    iceberg_catalog=tmp_path / place,
                ),
                QUICK,
            )
        assert "\n" not in str(failure.value)
    with pytest.raises(JobError, match="is in an object store"):
        archive_here(
            ArchiveSettings(
                log_directories=[tmp_path / "log"],
                archive=ArchiveLocation("s3://bucket/archive"),
                iceberg_catalog=tmp_path / "catalog.db",
            ),
            QUICK,
        )
    assert not (tmp_path / "archive").exists()


def test_other_readers_find_the_newest_metadata_in_the_catalog(tmp_path: Path) -> None:
    """Spark's JdbcCatalog by these names, DuckDB by the path."""
    written(tmp_path, 4)
    archive_here(settings_for(tmp_path), QUICK)
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as database:
        names = "catalog_name, table_namespace, table_name, metadata_location"
        (row,) = database.execute(f"SELECT {names} FROM iceberg_tables").fetchall()
    assert row[:3] == ("odradek", "archives", "archive")
    assert row[3] == table_in(tmp_path).metadata_location
