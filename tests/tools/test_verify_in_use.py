"""`odradek verify` on a directory in which a broker is writing while it is read."""

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from odradek.storage.checkpoints import write_offsets, write_topic_id
from odradek.storage.filenames import LOCK, LOG_START_OFFSET_CHECKPOINT, PARTITION_METADATA
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.tools.verify import command
from odradek.tools.verify.findings import Findings, Severity
from odradek.tools.verify.second_look import checked_again
from tests.support.log_box import NOW_MS, LogBox, put
from tests.support.transaction_directories import STATE_TOPIC, stopped_directory
from tests.tools.test_verify_transactions import found_in, marker_with, open_one, transaction

PATH = Path("log")


@pytest.fixture
def in_use(tmp_path: Path) -> Iterator[Path]:
    """Three segments of orders-0 with an open transaction, locked by a broker."""
    data = stopped_directory(tmp_path, open_one, [transaction()], segment_bytes=len(marker_with()))
    (data / ".kafka_cleanshutdown").unlink()
    lock = Files().lock(data / LOCK)
    yield data
    lock.release()


def when_listed(
    monkeypatch: pytest.MonkeyPatch, directory: Path, change: Callable[[], object], time: int = 1
) -> None:
    """Call `change` when the directory has been listed so many times."""
    times = count(1)

    class BusyFiles(Files):
        def list_directory(self, path: Path) -> list[str]:
            names = super().list_directory(path)
            if path == directory and next(times) == time:
                change()
            return names

    monkeypatch.setattr(command, "Files", BusyFiles)


def test_a_log_that_changes_while_it_is_read_is_read_again(
    in_use: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = in_use / "orders-0"

    def clean() -> None:  # what the cleaner does: it replaces a segment and removes the next
        first, second, *_ = sorted(log.glob("*.log"))
        first.write_bytes(first.read_bytes() + second.read_bytes())
        for path in log.glob(f"{second.stem}.*"):
            path.unlink()

    size = (log / f"{0:020}.log").stat().st_size
    clean_once = iter([clean])

    class Cleaned(Files):
        def size(self, path: Path) -> int:
            found = super().size(path)
            if path.name == f"{0:020}.log" and found == size and path.parent == log:
                for each in clean_once:
                    each()
            return found

    monkeypatch.setattr(command, "Files", Cleaned)
    found = found_in(in_use, deep=True)
    wrong = [each for each in found.problems if "index" not in str(each["path"])]
    assert wrong == [], found
    assert found.notes_that("orders-0", "transactional id pay has it, Ongoing")
    assert next(clean_once, None) is None, "the log was not changed"


def test_a_topic_that_is_deleted_meanwhile_is_left_out(
    in_use: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete() -> None:
        shutil.rmtree(in_use / "orders-0")

    # The metadata log is the first that is read.
    when_listed(monkeypatch, in_use / "__cluster_metadata-0", delete)
    found = found_in(in_use)
    assert not [each for each in found.problems if "cannot be read" in str(each["what"])]
    assert found.summary["partitions"] == 2


def test_a_topic_that_is_created_again_meanwhile_is_left_out(
    in_use: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = in_use / "orders-0"
    write_topic_id(Files(), log / PARTITION_METADATA, b"\1" * 16)
    write_offsets(Files(), in_use / LOG_START_OFFSET_CHECKPOINT, {("orders", 0): 1})

    def create_again() -> None:
        shutil.rmtree(log)
        LogBox(in_use).open().close(NOW_MS)
        write_topic_id(Files(), log / PARTITION_METADATA, b"\7" * 16)

    when_listed(monkeypatch, in_use / "__cluster_metadata-0", create_again)
    found = found_in(in_use)
    assert not [each for each in found.problems if "orders-0" in str(each["path"])]
    assert found.summary["partitions"] == 2


@pytest.mark.parametrize(
    ("directory", "time"), [("", 1), ("orders-0", 1), ("orders-0", 2), ("orders-0", 3)]
)
def test_a_broker_that_starts_meanwhile_raises_no_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str, time: int
) -> None:
    data = stopped_directory(tmp_path, lambda log: put(log, b"v"))
    started = []

    def start() -> None:
        (data / ".kafka_cleanshutdown").unlink()
        log = LogBox(data).open()
        put(log, b"w")  # makes the indexes larger
        started.append((Files().lock(data / LOCK), log))

    when_listed(monkeypatch, data / directory, start, time)
    found = found_in(data)
    assert found.problems == []
    assert started
    assert found.summary["brokerIsRunning"]


def test_transactions_are_not_called_hanging_if_the_coordinators_log_vanishes(
    in_use: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def delete() -> None:
        shutil.rmtree(in_use / f"{STATE_TOPIC}-0")

    when_listed(monkeypatch, in_use / "orders-0", delete)
    found = found_in(in_use)
    assert found.notes_that("orders-0", "whether a coordinator has it is not known")
    assert not [each for each in found.problems if "hanging" in str(each["what"])]


def test_a_marker_that_is_written_meanwhile_counts(
    in_use: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = in_use / f"{STATE_TOPIC}-0"
    (state / f"{0:020}.log").write_bytes(b"")
    log = max((in_use / "orders-0").glob("*.log"))

    def end() -> None:
        with log.open("ab") as file:
            file.write(marker_with(offset=3))

    assert found_in(in_use).says("orders-0", "hanging")
    when_listed(monkeypatch, state, end)  # the last log that is read
    assert not found_in(in_use).says("orders-0", "hanging")


def test_a_topic_that_is_deleted_at_last_has_no_hanging_transactions(
    in_use: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = in_use / f"{STATE_TOPIC}-0"
    (state / f"{0:020}.log").write_bytes(b"")

    def delete() -> None:
        shutil.rmtree(in_use / "orders-0")

    assert found_in(in_use).says("orders-0", "hanging")
    when_listed(monkeypatch, state, delete)
    assert not found_in(in_use).says("orders-0", "hanging")


def test_an_index_may_have_entries_of_what_was_appended_since(tmp_path: Path) -> None:
    def write(log: PartitionLog) -> None:
        for _ in range(4):
            put(log, b"v")

    data = stopped_directory(tmp_path, write, index_interval_bytes=1)
    log = data / "orders-0" / f"{0:020}.log"
    log.write_bytes(log.read_bytes()[: len(log.read_bytes()) // 2])
    assert found_in(data).says(log.with_suffix(".index").name, "after the end of the log")
    (data / ".kafka_cleanshutdown").unlink()
    assert not found_in(data).says(log.with_suffix(".index").name)


def test_only_what_every_look_finds_is_a_problem() -> None:
    looks = iter([("a 1", "b"), ("a 2", "c"), ("a 3", "b"), ("a 4", "d")])
    findings = Findings()

    def look(trial: Findings) -> int:
        trial.totals.batches += 5
        trial.note(PATH, "noted")
        for what in next(looks):
            trial.problem(PATH, what)
        return NOW_MS

    assert checked_again(look, findings, PATH, lambda: 4) == NOW_MS
    seen = [f"{found.severity} {found.what}" for found in findings.listed]
    assert sorted(seen) == ["note noted", "problem a 4"]
    assert (findings.totals.batches, findings.totals.problems, findings.totals.notes) == (5, 1, 1)


def test_a_look_that_finds_no_problem_is_the_last() -> None:
    looks = iter([True, False])
    findings = Findings()

    def look(trial: Findings) -> None:
        if next(looks):
            trial.problem(PATH, "broken")

    checked_again(look, findings, PATH, lambda: 9)
    assert findings.listed == []


def test_where_each_look_finds_something_else_nothing_is_certain() -> None:
    looks = iter("abcd")
    findings = Findings()
    checked_again(lambda trial: trial.problem(PATH, next(looks)), findings, PATH, lambda: 4)
    [note] = findings.listed
    assert note.severity is Severity.NOTE
    assert "kept changing" in note.what
