"""Other writers of an archive's table: what they change is noticed before anything relies on it."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field, TableFeatures, write_deltalake

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive.job import ArchiveSettings, plan_archive, run_archive
from odradek.pipeline.jobs.replay.archived import Archived, read_archive
from odradek.pipeline.jobs.replay.selection import Selection
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.storage.log import PartitionLog
from tests.support.archives import InThisProcess, archive_here, at, logged, rows_of, seen
from tests.support.crashing_files import QuickFiles
from tests.support.log_box import LogBox, put

QUICK = QuickFiles()
Change = Callable[[DeltaTable], object]


class Rig:
    """A log whose records are archived, each of them by a version of its own, from 1 on."""

    def __init__(self, root: Path) -> None:
        self.box = LogBox(root / "log", files=QUICK)
        self.log: PartitionLog = self.box.open()
        self.settings = ArchiveSettings(
            log_directories=[root / "log"], archive=at(root / "archive"), until_end=True
        )
        for value in (b"a", b"b", b"c"):
            put(self.log, value)
            archive_here(self.settings, QUICK)

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.settings.archive.uri)

    def refused(self) -> str:
        """The message with which archive and replay refuse the table."""
        messages = set()
        for use in (archive_here, plan_archive, replayed):
            with pytest.raises(JobError) as refusal:
                use(self.settings)
            messages.add(str(refusal.value))
        assert len(messages) == 1
        return messages.pop()

    def check(self) -> None:
        """Whether archive and replay go on, and each record is there once."""
        put(self.log, b"more")
        archive_here(self.settings, QUICK)
        replayed(self.settings)
        assert rows_of(seen(self.settings.archive)) == logged(self.box.directory)


def replayed(settings: ArchiveSettings) -> Archived:
    return read_archive(settings.archive, TopicChoice(), Selection(), QUICK)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def overwrite(table: DeltaTable) -> None:
    rows = table.to_pyarrow_table(filters=[("offset", "=", 0)])
    write_deltalake(table, rows, mode="overwrite")


def append(table: DeltaTable) -> None:
    write_deltalake(table, table.to_pyarrow_table(filters=[("offset", "=", 0)]), mode="append")


@pytest.mark.parametrize(
    ("change", "operation"),
    [
        (lambda table: table.restore(2), "RESTORE"),
        (lambda table: table.delete('"offset" = 1'), "DELETE"),
        (lambda table: table.update(updates={"error": "'x'"}, predicate='"offset" = 1'), "UPDATE"),
        (overwrite, "WRITE"),
        (append, "WRITE"),
    ],
)
def test_records_that_another_writer_changes_are_refused_until_that_is_undone(
    rig: Rig, change: Change, operation: str
) -> None:
    change(rig.table)
    put(rig.log, b"d")
    assert f"version 4 ({operation}) of another writer" in rig.refused()
    assert rig.table.version() == 4
    assert f'DeltaTable("{rig.settings.archive}").restore(3)' in rig.refused()
    rig.table.restore(3)
    rig.check()


def test_a_change_between_reading_and_committing_is_refused(rig: Rig) -> None:
    class Deleting(InThisProcess):
        def run(self, *arguments: object) -> object:  # type: ignore[override] # passes them on
            rig.table.delete('"offset" = 1')
            return super().run(*arguments)  # type: ignore[arg-type]

    put(rig.log, b"d")
    with pytest.raises(JobError, match=r"version 4 \(DELETE\)"):
        run_archive(Deleting(), rig.settings, files=QUICK)
    rig.table.restore(3)
    rig.check()


def test_merging_vacuum_and_new_columns_of_others_are_no_change(rig: Rig) -> None:
    rig.table.optimize.compact()
    rig.table.vacuum(dry_run=False)
    rig.table.optimize.z_order(["offset"])
    rig.table.alter.add_columns([Field("note", "string")])
    assert rig.table.version() > 5
    rig.check()
    rig.table.optimize.compact()
    rig.check()


def test_a_change_that_is_accepted_is_named_in_the_state(rig: Rig) -> None:
    rig.table.delete('"offset" = 1')
    put(rig.log, b"d")
    summary = archive_here(replace(rig.settings, accept_changes=True), QUICK)
    assert summary.notes == ["what another writer has changed is accepted: version 4 (DELETE)"]
    assert [row[2] for row in rows_of(seen(rig.settings.archive))] == [0, 2, 3]
    archive_here(rig.settings, QUICK)
    assert replayed(rig.settings).notes == [
        "another writer has changed records of the archive: version 4 (DELETE)"
    ]


def test_files_that_another_writer_has_written_again_are_read_and_merged_with_others(
    tmp_path: Path,
) -> None:
    """Delta's library gives their columns other types of Arrow: views of strings."""
    rig = Rig(tmp_path)
    rig.settings = replace(rig.settings, compact=True)
    archive_here(rig.settings, QUICK)
    rig.table.delete('"offset" = 1')
    put(rig.log, b"d")
    settings = replace(rig.settings, accept_changes=True, compact=False)
    archive_here(settings, QUICK)
    (files,) = replayed(settings).topics["orders"]
    rows = [row for table in files.tables(0) for row in table["value"].to_pylist()]
    assert rows == [b"a", b"c", b"d"]
    assert archive_here(rig.settings, QUICK).total().merged_files == 1
    assert [row[2] for row in rows_of(seen(rig.settings.archive))] == [0, 2, 3]


def test_changes_that_the_log_no_longer_names_are_refused_until_they_are_accepted(
    rig: Rig,
) -> None:
    rig.table.optimize.compact()
    rig.table.alter.add_columns([Field("note", "string")])
    rig.table.create_checkpoint()
    (entry,) = Path(rig.settings.archive.uri, "_delta_log").glob("*4.json")
    entry.unlink()
    assert "00000000000000000004.json was deleted" in rig.refused()
    archive_here(replace(rig.settings, accept_changes=True), QUICK)
    rig.check()


def test_the_entry_of_its_own_newest_commit_is_not_needed(rig: Rig) -> None:
    rig.table.alter.add_columns([Field("note", "string")])
    rig.table.create_checkpoint()
    (entry,) = Path(rig.settings.archive.uri, "_delta_log").glob("*3.json")
    entry.unlink()  # as a clean-up of the table's log does it
    rig.check()


def test_a_table_that_another_writer_has_made_of_an_archive_is_refused(
    rig: Rig, tmp_path: Path
) -> None:
    copy = at(tmp_path / "copy")
    write_deltalake(copy.uri, rig.table.to_pyarrow_table(), partition_by=["topic", "date"])
    rig.settings = replace(rig.settings, archive=copy)
    assert "another writer has made it" in rig.refused()


def test_a_copy_of_all_files_is_an_archive_of_its_own(rig: Rig, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "archive", tmp_path / "copy")
    original, rig.settings = rig.settings, replace(rig.settings, archive=at(tmp_path / "copy"))
    rig.check()
    rig.settings = original
    rig.check()


def test_a_log_and_a_state_of_different_times_are_refused(rig: Rig, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "archive", tmp_path / "older")
    put(rig.log, b"d")
    archive_here(rig.settings, QUICK)
    for part, of in (("_odradek", "state"), ("_delta_log", "log")):
        mixed = tmp_path / f"older-{of}"
        shutil.copytree(tmp_path / "archive", mixed)
        shutil.rmtree(mixed / part)
        shutil.copytree(tmp_path / "older" / part, mixed / part)
        rig.settings = replace(rig.settings, archive=at(mixed))
        assert "lacks _odradek/state-" in rig.refused()


def test_a_table_with_deletion_vectors_is_refused(rig: Rig) -> None:
    rig.table.alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )
    assert "archives do not support: deletionVectors" in rig.refused()
