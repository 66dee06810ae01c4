"""An archive that follows its logs, round by round: with a clock that moves between the rounds."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.archive import stable_offsets
from odradek.pipeline.jobs.archive.job import ArchiveRun, ArchiveSettings
from odradek.pipeline.jobs.archive.stable_offsets import StableOffsets
from odradek.pipeline.jobs.archive.table import archive_table
from odradek.pipeline.jobs.archive.table.state import PartitionKey
from odradek.pipeline.jobs.following import FollowingArchive, Intervals, Round
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading.isolation import last_stable_offset, open_transactions
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.storage.log import PartitionLog
from odradek.storage.topic_partition import TopicPartition
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
from tests.support.dirty_logs import Writer
from tests.support.log_box import NOW_MS, LogBox, batch_of, put

QUICK = QuickFiles()
PARTITION = TopicPartition("orders", 0)
KEY = PartitionKey(topic="orders", topic_id="", partition=0)
Step = Callable[[], object]


def log_at(root: Path) -> tuple[LogBox, PartitionLog]:
    box = LogBox(root / "log", files=QUICK, segment_bytes=2000, segment_index_bytes=1024)
    return box, box.open()


class Pauses(threading.Event):
    """Does a step in each pause between two rounds, and stops after the last one."""

    def __init__(self, *steps: Step) -> None:
        super().__init__()
        self._steps = iter(steps)
        self.now_s = 0.0
        self.lengths_s: list[float] = []

    def clock(self) -> float:
        return self.now_s

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.now_s += timeout
        self.lengths_s.append(timeout)
        step = next(self._steps, self.set)
        step()
        return self.is_set()


class Followed:
    """An archive of the logs in a directory, and what was reported of its rounds."""

    def __init__(self, root: Path, **intervals: float) -> None:
        self.settings = ArchiveSettings(
            log_directories=[root / "log"], archive=at(root / "archive"), max_split_bytes=600
        )
        self._intervals = Intervals(**intervals)
        self.rounds: list[Round] = []

    def follow(self, *steps: Step) -> Pauses:
        """Run as many rounds as there are steps, and one more."""
        pauses = Pauses(*steps)
        runner = InThisProcess()
        following = FollowingArchive(
            runner,
            runner,
            self.settings,
            self.rounds.append,
            intervals=self._intervals,
            files=QUICK,
            clock=pauses.clock,
        )
        following.run(pauses)
        return pauses

    def rows(self) -> list[Any]:
        return rows_of(seen(self.settings.archive))

    def version(self) -> int:
        return DeltaTable(self.settings.archive.uri).version()

    def records(self) -> list[int]:
        """How many each round has archived."""
        return [each.summary.total().records for each in self.rounds]


def test_each_round_archives_what_was_written_since_the_last_one(tmp_path: Path) -> None:
    box, log = log_at(tmp_path)
    followed = Followed(tmp_path)
    put(log, b"1", b"2")
    versions: list[int] = []

    def nothing() -> None:
        versions.append(followed.version())

    followed.follow(lambda: put(log, b"3", b"4", b"5"), nothing, nothing, lambda: put(log, b"6"))
    assert followed.records() == [2, 3, 0, 0, 1]
    assert len(set(versions)) == 1  # rounds without news commit nothing
    assert followed.rows() == logged(box.directory)
    assert [each.error for each in followed.rounds] == [""] * 5


def test_a_round_takes_what_transactions_have_committed(tmp_path: Path) -> None:
    box, log = log_at(tmp_path)
    followed = Followed(tmp_path)
    writer = Writer(1, leaves_open=True)

    def check_and_write() -> None:
        end = last_stable_offset(LogDirectories([tmp_path / "log"]), PARTITION, log.log_end_offset)
        assert followed.rows() == [row for row in logged(box.directory) if row[2] < end]
        writer.write(log, 5)

    followed.follow(*[check_and_write] * 20)
    Writer(1, producers=False).write(log, 1)
    assert sum(followed.records()) > 50


def test_small_files_are_merged_beside_the_rounds(tmp_path: Path) -> None:
    box, log = log_at(tmp_path)
    followed = Followed(tmp_path, round_s=5, merge_s=60)
    followed.follow(*[lambda: put(log, b"another")] * 40)
    assert followed.records() == [0, *[1] * 40]
    assert len(data_files(followed.settings.archive)) < 40
    assert followed.rows() == logged(box.directory)


def test_an_archive_that_cannot_be_made_is_an_error_at_once(tmp_path: Path) -> None:
    log_at(tmp_path)
    (tmp_path / "archive").write_text("a file")
    with pytest.raises(JobError, match="cannot create the archive"):
        Followed(tmp_path).follow()


def test_a_round_that_fails_is_tried_again_after_growing_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, log = log_at(tmp_path)
    followed = Followed(tmp_path, round_s=5)

    def refuse(*_: object, **__: object) -> None:
        raise DeltaError("no space left")

    def break_off() -> None:
        put(log, b"3")
        monkeypatch.setattr(archive_table, "_RETRY_S", 0)
        monkeypatch.setattr(DeltaTable, "create_write_transaction", refuse)

    put(log, b"1", b"2")
    pauses = followed.follow(break_off, *[lambda: None] * 5, monkeypatch.undo, lambda: None)
    assert pauses.lengths_s == [5, 10, 20, 40, 60, 60, 60, 5, 5]
    assert followed.records() == [2, 0, 0, 0, 0, 0, 0, 1, 0]
    errors = [each.error for each in followed.rounds]
    assert errors[0] == errors[-1] == errors[-2] == ""
    assert all("no space left" in each for each in errors[1:-2])
    assert followed.rows() == logged(box.directory)


def test_after_a_failed_round_the_next_one_does_not_begin_earlier(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_at(tmp_path)

    def refuse(_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(ArchiveRun, "read", refuse)
    pauses = Followed(tmp_path, round_s=300).follow(lambda: None, monkeypatch.undo)
    assert pauses.lengths_s == [300, 300, 300]


def test_a_damaged_checkpoint_is_a_problem_until_it_is_repaired(tmp_path: Path) -> None:
    box, log = log_at(tmp_path)
    followed = Followed(tmp_path)
    checkpoint = tmp_path / "log" / "log-start-offset-checkpoint"
    put(log, b"1")

    def mend() -> None:
        checkpoint.unlink()
        put(log, b"2")

    followed.follow(lambda: checkpoint.write_text("0\n1\nx\n"), lambda: None, mend)
    problems = [each.summary.problems for each in followed.rounds]
    assert [len(each) for each in problems] == [0, 1, 1, 0]
    assert "log-start-offset-checkpoint, line 3: " in problems[1][0]
    assert followed.rows() == logged(box.directory)


def test_a_topic_that_was_deleted_is_a_problem_and_the_others_are_archived(tmp_path: Path) -> None:
    box, log = log_at(tmp_path)
    followed = Followed(tmp_path)
    followed.settings = replace(followed.settings, topics=TopicChoice(names=["orders", "b"]))
    other = box.directory.with_name("b-0")
    other.mkdir()

    def delete() -> None:
        other.rmdir()
        put(log, b"1")

    followed.follow(delete, lambda: put(log, b"2"), other.mkdir)
    problem = f"no topic b in {tmp_path / 'log'}"
    assert [each.summary.problems for each in followed.rounds] == [[], [problem], [problem], []]
    assert [each.error for each in followed.rounds] == [""] * 4
    assert followed.rows() == logged(box.directory)


def test_an_archive_at_the_same_time_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, log = log_at(tmp_path)
    followed = Followed(tmp_path)
    plans = ArchiveRun._plans

    def overtaken(run: ArchiveRun) -> object:
        found = plans(run)
        monkeypatch.undo()
        archive_here(replace(followed.settings, until_end=True), QUICK)
        return found

    def write() -> None:
        put(log, b"1")
        monkeypatch.setattr(ArchiveRun, "_plans", overtaken)

    pauses = followed.follow(write, lambda: put(log, b"2"))
    assert pauses.lengths_s == [5, 5, 5]
    (note,) = followed.rounds[1].summary.notes
    assert note.startswith("another process is archiving to")
    assert followed.rows() == logged(box.directory)


def merged() -> None:
    """Wait until no merge runs."""
    for thread in threading.enumerate():
        if thread.name == "merge":
            thread.join()


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (OSError("no space left"), "small files were not merged: no space left"),
        (TypeError("of our own"), "small files were not merged: TypeError('of our own')"),
    ],
)
def test_merging_that_fails_is_a_problem_until_it_succeeds_and_no_failed_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, reason: str
) -> None:
    box, log = log_at(tmp_path)
    followed = Followed(tmp_path, round_s=5, merge_s=10)

    def refuse(_: object) -> None:
        raise failure

    monkeypatch.setattr(ArchiveRun, "compact", refuse)
    steps = [lambda: put(log, b"1"), merged, merged, monkeypatch.undo, merged, merged]
    pauses = followed.follow(*steps)
    assert pauses.lengths_s == [5] * 7
    assert [each.error for each in followed.rounds] == [""] * 7
    problems = [each.summary.problems for each in followed.rounds]
    assert problems[:3] == [[], [], []]
    assert problems[3] == problems[4] == [reason]
    assert problems[-1] == []
    assert followed.rows() == logged(box.directory)


def test_a_round_that_fails_by_a_mistake_of_our_own_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, log = log_at(tmp_path)
    followed = Followed(tmp_path)

    def refuse(_: object) -> None:
        raise TypeError("of our own")

    def break_off() -> None:
        put(log, b"1")
        monkeypatch.setattr(ArchiveRun, "read", refuse)

    followed.follow(break_off, monkeypatch.undo)
    assert [each.error for each in followed.rounds] == ["", "TypeError('of our own')", ""]
    assert followed.rows() == logged(box.directory)


def test_what_a_failed_round_could_not_commit_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, log = log_at(tmp_path)
    followed = Followed(tmp_path)
    put(log, b"1")

    def refuse(*_: object, **__: object) -> None:
        raise DeltaError("read-only")

    def lose() -> None:
        Writer(1, producers=False).write(log, 60)
        log.delete_first_segments(len(box.names(".log")) - 1, NOW_MS)
        monkeypatch.setattr(archive_table, "_RETRY_S", 0)
        monkeypatch.setattr(DeltaTable, "create_write_transaction", refuse)

    followed.follow(lose, lambda: None, monkeypatch.undo)
    lost = [each.summary.total().lost for each in followed.rounds]
    assert lost == [0, 0, 0, log.log_start_offset - 1]
    assert [len(each.summary.lost) for each in followed.rounds] == [0, 0, 0, 1]
    assert [bool(each.error) for each in followed.rounds] == [False, True, True, False]


def test_a_round_that_fails_beside_merging_reports_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, log = log_at(tmp_path)
    followed = Followed(tmp_path, round_s=5, merge_s=5)

    def refuse(*_: object) -> None:
        raise OSError("no space left")

    def break_off() -> None:
        merged()
        monkeypatch.setattr(ArchiveRun, "read", refuse)

    monkeypatch.setattr(ArchiveRun, "compact", refuse)
    followed.follow(lambda: put(log, b"1"), break_off)
    last = followed.rounds[-1]
    assert last.error == "no space left"
    assert last.summary.problems == ["small files were not merged: no space left"]


def test_records_that_a_log_has_lost_are_replaced(tmp_path: Path) -> None:
    box, log = log_at(tmp_path)
    followed = Followed(tmp_path)

    def lose() -> None:
        log.truncate_to(2, NOW_MS)
        put(log, b"another 3", b"4", b"5")

    put(log, b"1", b"2")
    put(log, b"3")
    followed.follow(lose)
    assert len(followed.rounds[1].summary.repaired) == 1
    assert followed.rows() == logged(box.directory)


# -- last stable offsets ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_remembered_transactions_are_those_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    _, log = log_at(tmp_path)
    directories = LogDirectories([tmp_path / "log"])
    writer, offsets = Writer(seed, leaves_open=True), StableOffsets()
    read_from: list[int] = []

    def spied(*arguments: Any) -> Any:
        read_from.append(arguments[-1].offset)
        return open_transactions(*arguments)

    monkeypatch.setattr(stable_offsets, "open_transactions", spied)
    ends = [0]
    for _ in range(30):
        writer.write(log, 3)
        end = log.log_end_offset
        found = offsets.of(directories, PARTITION, KEY, end)
        assert found == last_stable_offset(directories, PARTITION, end)
        ends.append(end)
    assert read_from == ends[:-1]


def test_transactions_that_a_log_has_lost_are_forgotten(tmp_path: Path) -> None:
    _, log = log_at(tmp_path)
    directories, offsets = LogDirectories([tmp_path / "log"]), StableOffsets()
    first = put(log, b"1") + 1
    undecided = batch_of(b"open", producer=(77, 0, 0), is_transactional=True)
    log.append(undecided, now_ms=NOW_MS, transaction_verified=True)
    assert offsets.of(directories, PARTITION, KEY, log.log_end_offset) == first
    log.truncate_to(first, NOW_MS)
    put(log, b"2")
    put(log, b"3")
    assert offsets.of(directories, PARTITION, KEY, log.log_end_offset) == log.log_end_offset
