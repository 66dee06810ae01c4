"""Archives that are killed at any step, and run twice at once: each record is there once."""

import itertools
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.table import TableAlterer

from odradek.pipeline.jobs import JobError, OvertakenError
from odradek.pipeline.jobs.archive.job import ArchiveSettings
from odradek.pipeline.jobs.archive.table import archive_table
from odradek.pipeline.jobs.archive.table.archive_table import ArchiveTable
from odradek.pipeline.jobs.archive.table.merging import MergedFile, MergingWork, files_to_merge
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.log_reader import LogReader
from tests.support.archives import (
    archive_here,
    at,
    logged,
    rows_of,
    seen,
    small_segments,
    write_more,
)
from tests.support.crashing_files import CrashedError, CrashingFiles, QuickFiles
from tests.support.lengths import LONG, by_length
from tests.support.log_box import NOW_MS, LogBox

if TYPE_CHECKING:
    pass

QUICK = QuickFiles()
COMMITTING: tuple[tuple[Any, str], ...] = (
    (DeltaTable, "create"),
    (DeltaTable, "create_write_transaction"),
    (DeltaTable, "vacuum"),
    (TableAlterer, "add_columns"),
)


class DyingFiles(CrashingFiles):
    """Also dies before and after each commit of the table, and at each new directory."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        for name in ("remove_tree", "make_directory"):
            setattr(self, name, self._counted(getattr(Files, name).__get__(self)))

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Count the commits that are made meanwhile."""
        with pytest.MonkeyPatch.context() as patch:
            for owner, name in COMMITTING:
                patch.setattr(owner, name, self._around(getattr(owner, name)))
            yield

    def _around(self, commit: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            result = self._counted(commit)(*arguments, **options)
            return self._counted(lambda: result)()

        return counted


def settings_for(root: Path, **more: Any) -> ArchiveSettings:
    more = {"until_end": True, "max_split_bytes": 600, "compact": True, **more}
    return ArchiveSettings(log_directories=[root / "log"], archive=at(root / "archive"), **more)


def written(root: Path, batches: int) -> tuple[LogBox, PartitionLog]:
    box = small_segments(root)
    log = box.open()
    write_more(log, batches)
    return box, log


def lost_and_grown(root: Path) -> tuple[LogBox, ArchiveSettings]:
    """An archive of small files, and a log that has lost records and has grown since."""
    box, log = written(root, batches=12)
    settings = settings_for(root, compact=False)
    archive_here(settings, QUICK)
    batches = list(LogReader(box.directory).batches())
    log.truncate_to(batches[-3].header.base_offset, NOW_MS)
    write_more(log, 12)
    return box, settings


def died(settings: ArchiveSettings, limit: int) -> bool:
    files = DyingFiles(limit)
    try:
        with files.committing():
            archive_here(settings, files)
    except CrashedError:
        return True
    return False


@pytest.mark.slow
def test_killed_at_any_step_and_run_again_each_record_is_there_once(tmp_path: Path) -> None:
    box, settings = lost_and_grown(tmp_path / "first")
    before, expected = rows_of(seen(settings.archive)), logged(box.directory)
    kept = [row for row in before if row in expected]
    assert 0 < len(kept) < len(before)
    for limit in itertools.count(0, 1 if LONG else 4):
        here = settings_for(tmp_path / str(limit))
        shutil.copytree(tmp_path / "first", tmp_path / str(limit))
        was_killed = died(here, limit)
        between = rows_of(seen(here.archive))
        offsets = [row[2] for row in between]
        assert len(set(offsets)) == len(offsets)
        assert set(kept) <= set(between)
        assert set(between) <= set(expected) or between == before
        died(here, limit // 2)
        assert not died(here, 10_000)
        assert rows_of(seen(here.archive)) == expected
        shutil.rmtree(tmp_path / str(limit))
        if not was_killed:
            break
    assert limit > 40


def test_of_two_runs_at_once_one_archives_and_the_other_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, _ = written(tmp_path, batches=30)
    settings = settings_for(tmp_path, compact=False)
    commit = DeltaTable.create_write_transaction

    def second(*arguments: Any, **options: Any) -> None:
        monkeypatch.undo()
        archive_here(settings, QUICK)
        commit(*arguments, **options)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", second)
    with pytest.raises(OvertakenError, match="it has archived orders-0, offsets 0 to"):
        archive_here(settings, QUICK)
    assert rows_of(seen(settings.archive)) == logged(box.directory)


def test_two_runs_at_once_archive_different_topics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, log = written(tmp_path, batches=30)
    log.close(NOW_MS)
    other = box.directory.with_name("other-0")
    shutil.copytree(box.directory, other)
    commit = DeltaTable.create_write_transaction

    def second(*arguments: Any, **options: Any) -> None:
        monkeypatch.undo()
        archive_here(settings_for(tmp_path, topics=TopicChoice(names=["other"])), QUICK)
        commit(*arguments, **options)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", second)
    archive_here(settings_for(tmp_path, topics=TopicChoice(names=["orders"])), QUICK)
    found = rows_of(seen(settings_for(tmp_path).archive))
    assert found == logged(box.directory) + logged(other)


def merge_files(settings: ArchiveSettings) -> int:
    """Merge the small files, and nothing else. Returns how many files were merged from others."""
    archive = ArchiveTable(settings.archive, QUICK)
    work = MergingWork(location=settings.archive, files=QUICK)
    merged = [work(group) for group in files_to_merge(archive.data_files("orders"))]
    return len(archive.merge(list(itertools.chain(*merged))))


def test_of_two_merges_at_once_one_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, _ = written(tmp_path, batches=30)
    archive_here(settings_for(tmp_path, compact=False), QUICK)
    settings = settings_for(tmp_path)
    merge = ArchiveTable.merge

    def second(archive: ArchiveTable, merged: list[MergedFile]) -> list[MergedFile]:
        monkeypatch.undo()
        assert merge_files(settings) > 1
        return merge(archive, merged)

    monkeypatch.setattr(ArchiveTable, "merge", second)
    assert archive_here(settings, QUICK).total().merged_files == 0
    assert rows_of(seen(settings.archive)) == logged(box.directory)


def test_a_merge_leaves_out_files_that_another_tool_merges_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, _ = written(tmp_path, batches=30)
    settings = settings_for(tmp_path)
    archive_here(settings_for(tmp_path, compact=False), QUICK)
    commit = DeltaTable.create_write_transaction

    def second(*arguments: Any, **options: Any) -> None:
        monkeypatch.undo()
        DeltaTable(settings.archive.uri).optimize.compact()
        commit(*arguments, **options)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", second)
    assert merge_files(settings) == 0
    assert rows_of(seen(settings.archive)) == logged(box.directory)


@pytest.mark.parametrize("repair_last", [True, False])
def test_a_merge_and_a_repair_at_once_leave_each_record_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repair_last: bool
) -> None:
    box, settings = lost_and_grown(tmp_path)

    def repair() -> None:
        assert len(archive_here(settings_for(tmp_path, compact=False), QUICK).repaired) == 1

    def merge() -> None:
        merge_files(settings)

    first, last = (merge, repair) if repair_last else (repair, merge)
    create = DeltaTable.create_write_transaction

    def after_first(commit: Callable[..., Any]) -> Callable[..., Any]:
        def committed(*arguments: Any, **options: Any) -> Any:
            monkeypatch.undo()
            first()
            return commit(*arguments, **options)

        return committed

    monkeypatch.setattr(DeltaTable, "create_write_transaction", after_first(create))
    last()
    assert rows_of(seen(settings.archive)) == logged(box.directory)


@pytest.mark.parametrize("error", [OSError("timed out"), DeltaError("timed out")])
def test_a_commit_whose_answer_is_lost_is_not_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    box, _ = written(tmp_path, batches=30)
    settings = settings_for(tmp_path, compact=False)
    commit = DeltaTable.create_write_transaction

    def lost(*arguments: Any, **options: Any) -> None:
        monkeypatch.undo()
        commit(*arguments, **options)
        raise error

    monkeypatch.setattr(DeltaTable, "create_write_transaction", lost)
    archive_here(settings, QUICK)
    assert rows_of(seen(settings.archive)) == logged(box.directory)


@pytest.mark.parametrize("times", [1, 100])
def test_a_commit_that_fails_is_tried_again_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    box, _ = written(tmp_path, batches=10)
    settings = settings_for(tmp_path, compact=False)
    commit = DeltaTable.create_write_transaction
    failures = [OSError("slow down")] * times

    def failing(*arguments: Any, **options: Any) -> None:
        if failures:
            raise failures.pop()
        commit(*arguments, **options)

    monkeypatch.setattr(archive_table, "_RETRY_S", 0)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", failing)
    if times == 1:
        archive_here(settings, QUICK)
        assert rows_of(seen(settings.archive)) == logged(box.directory)
    else:
        with pytest.raises(JobError, match=r"cannot commit to .*archive: slow down"):
            archive_here(settings, QUICK)


def test_a_commit_waits_until_others_have_committed_as_often_as_they_like(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a run of `archive` beside `tables`, which merges many small files one by one."""
    box, _ = written(tmp_path, batches=30)
    settings = settings_for(tmp_path, compact=False)
    other = small_segments(tmp_path / "other")
    other.directory = other.directory.with_name("other-0")
    others, left = replace(settings, log_directories=[tmp_path / "other" / "log"]), [20]
    log, commit = other.open(), DeltaTable.create_write_transaction

    def overtaken(*arguments: Any, **options: Any) -> None:
        if left[0]:
            left[0] -= 1
            write_more(log, 1)
            with monkeypatch.context() as without:
                without.setattr(DeltaTable, "create_write_transaction", commit)
                archive_here(others, QUICK)
        commit(*arguments, **options)

    monkeypatch.setattr(archive_table, "_RETRY_S", 0)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", overtaken)
    archive_here(settings, QUICK)
    assert left == [0]
    rows = rows_of(seen(settings.archive))
    assert rows == logged(box.directory) + logged(other.directory)


# -- SIGKILL, at a system call -------------------------------------------------------------------

CHANGES = (
    *("mkdir", "fsync", "link", "linkat", "rename", "renameat", "renameat2"),
    *("unlink", "unlinkat", "ftruncate"),
)
ONCE = """
import sys
from pathlib import Path
from tests.pipeline.jobs.test_archive_killed import settings_for
from tests.support.archives import archive_here

archive_here(settings_for(Path(sys.argv[1])))
"""


def was_killed_at(root: Path, number: int) -> bool:
    """Run an archive. SIGKILL comes at the change of that number in any of its threads."""
    calls = ",".join(CHANGES)
    strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}"]
    inject = ["-e", f"inject={calls}:signal=SIGKILL:when={number}"]
    run = [sys.executable, "-W", "ignore", "-c", ONCE, str(root)]
    code = subprocess.run([*strace, *inject, *run], check=False).returncode
    assert code in (0, -signal.SIGKILL, 128 + signal.SIGKILL)
    return code != 0


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_killed_at_any_change_of_the_file_system_each_record_is_there_once(tmp_path: Path) -> None:
    """Also in the middle of the table library's own commits."""
    box, settings = lost_and_grown(tmp_path / "first")
    before, expected = rows_of(seen(settings.archive)), logged(box.directory)
    kept = [row for row in before if row in expected]
    for number in itertools.count(1, by_length(20, 1)):
        root = tmp_path / str(number)
        shutil.copytree(tmp_path / "first", root)
        was_killed = was_killed_at(root, number)
        between = rows_of(seen(settings_for(root).archive))
        assert len({row[2] for row in between}) == len(between)
        assert set(kept) <= set(between)
        archive_here(settings_for(root), QUICK)
        assert rows_of(seen(settings_for(root).archive)) == expected
        shutil.rmtree(root)
        if not was_killed:
            break
    assert number > 20
