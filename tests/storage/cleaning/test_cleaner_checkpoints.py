"""cleaner-offset-checkpoint: one file per directory, one truth per log."""

from pathlib import Path

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.storage.checkpoints import read_offsets
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from odradek.storage.directories import found_log
from odradek.storage.files import Files
from odradek.storage.log_manager import LogManager
from odradek.storage.moving.log_moves import LogMoves
from tests.support.log_box import NOW_MS, put
from tests.support.partition_logs import UnsyncedFiles
from tests.support.timer import Timer

FILE = "cleaner-offset-checkpoint"


@pytest.fixture
def manager(tmp_path: Path) -> LogManager:
    paths = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    config = BrokerConfig.from_texts({"log.dirs": paths})
    manager = LogManager.open(config, files=UnsyncedFiles(), timer_ms=Timer())
    manager.load_logs(lambda _: config.stored_topic_config({}), now_ms=NOW_MS)
    for number in range(4):
        log = manager.create("t", number, b"t" * 16, config.stored_topic_config({}), now_ms=NOW_MS)
        put(log, *[b"v"] * 10)
    return manager


def content(manager: LogManager, number: int) -> dict[tuple[str, int], int]:
    return read_offsets(Files(), manager.directories[number].path / FILE)


def write(manager: LogManager, number: int, *entries: str) -> None:
    lines = "".join(f"{entry}\n" for entry in entries)
    path = manager.directories[number].path / FILE
    path.write_text(f"0\n{len(entries)}\n{lines}")


def saved(checkpoints: CleanerCheckpoints) -> int:
    """Write what is to be written; how many files that were."""
    unsaved = checkpoints.unsaved()
    for directory, offsets in unsaved:
        checkpoints.save(directory, offsets)
    assert checkpoints.unsaved() == []
    return len(unsaved)


def opened(manager: LogManager) -> CleanerCheckpoints:
    return CleanerCheckpoints(manager, UnsyncedFiles())


def test_what_was_put_is_in_the_file_of_its_directory(manager: LogManager) -> None:
    checkpoints = opened(manager)
    assert checkpoints.get(("t", 0)) is None
    assert saved(checkpoints) == 0
    checkpoints.put(("t", 0), 5)
    checkpoints.put(("t", 1), 6)
    assert saved(checkpoints) == 2
    assert (content(manager, 0), content(manager, 1)) == ({("t", 0): 5}, {("t", 1): 6})
    again = opened(manager)
    assert (again.get(("t", 0)), again.get(("t", 1)), again.get(("t", 2))) == (5, 6, None)


def test_a_log_that_moves_takes_its_offset_along(manager: LogManager) -> None:
    checkpoints = opened(manager)
    checkpoints.put(("t", 0), 5)
    saved(checkpoints)
    moves = LogMoves(manager, UnsyncedFiles())
    future = moves.begin(manager.get("t", 0), manager.directories[1])
    while (plan := future.next_copy()) is not None:
        plan.run()
        future.note(plan)
    moves.promote(future)
    assert saved(checkpoints) == 2
    assert (content(manager, 0), content(manager, 1)) == ({}, {("t", 0): 5})


def test_a_move_that_a_crash_kept_out_of_the_files_counts(manager: LogManager) -> None:
    write(manager, 1, "t 0 5")  # the log lies in the other directory now
    checkpoints = opened(manager)
    assert checkpoints.get(("t", 0)) == 5
    assert saved(checkpoints) == 2
    assert (content(manager, 0), content(manager, 1)) == ({("t", 0): 5}, {})


def test_of_two_entries_that_of_the_logs_own_directory_counts(manager: LogManager) -> None:
    write(manager, 0, "t 0 5", "t 1 3")
    write(manager, 1, "t 0 7", "t 1 4")
    checkpoints = opened(manager)
    assert (checkpoints.get(("t", 0)), checkpoints.get(("t", 1))) == (5, 4)


def test_logs_that_are_gone_are_forgotten_in_the_file_too(manager: LogManager) -> None:
    write(manager, 0, "gone 0 5", "t 0 5")
    checkpoints = opened(manager)
    assert checkpoints.get(("gone", 0)) is None
    assert saved(checkpoints) == 1
    assert content(manager, 0) == {("t", 0): 5}
    manager.delete([("t", 0)])
    checkpoints.drop_deleted()
    saved(checkpoints)
    assert content(manager, 0) == {}


def test_a_log_that_is_deleted_in_a_step_is_dropped_and_not_saved(manager: LogManager) -> None:
    write(manager, 0, "t 0 5", "t 2 5")
    checkpoints = opened(manager)

    def delete() -> None:
        if manager.find("t", 2):
            manager.delete([("t", 2)])
            checkpoints.drop_deleted()

    ((directory, offsets),) = checkpoints.unsaved(step=delete)
    assert (directory, offsets) == (manager.directories[0], {("t", 0): 5})
    checkpoints.put(("t", 2), 5)
    steps: list[int] = []
    checkpoints.drop_deleted(step=lambda: steps.append(1))
    assert len(steps) == 2
    assert checkpoints.get(("t", 2)) is None


def test_an_entry_behind_the_end_of_its_log_makes_all_of_it_dirty(
    manager: LogManager, caplog: pytest.LogCaptureFixture
) -> None:
    write(manager, 0, "t 0 11", "t 2 10")
    checkpoints = opened(manager)
    assert (checkpoints.get(("t", 0)), checkpoints.get(("t", 2))) == (None, 10)
    assert "t-0: the cleaner's checkpoint 11 is after the end, 10" in caplog.text


def test_a_file_that_makes_no_sense_says_nothing_and_is_replaced(
    manager: LogManager, caplog: pytest.LogCaptureFixture
) -> None:
    write(manager, 0, "t 0")
    checkpoints = opened(manager)
    assert checkpoints.get(("t", 0)) is None
    assert "all logs of the directory count as dirty" in caplog.text
    checkpoints.put(("t", 0), 5)
    saved(checkpoints)
    assert content(manager, 0) == {("t", 0): 5}


def test_the_entry_of_a_log_that_is_not_open_yet_waits_for_it(
    manager: LogManager, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found_log, "READ_AT_ONCE_BYTES", 0)
    home = manager.directories[0].path
    write(manager, 0, "t 0 8", "t 2 11")
    config = manager.get("t", 0).config
    manager.close(now_ms=NOW_MS)
    for left_of_a_clean_stop in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        (home / left_of_a_clean_stop).unlink()
    settings = {"log.dirs": f"{home},{home.parent / 'b'}"}
    again = LogManager.open(
        BrokerConfig.from_texts(settings), files=UnsyncedFiles(), timer_ms=Timer()
    )
    again.load_logs(lambda _: config, now_ms=NOW_MS, may_wait=lambda _: True)
    checkpoints = opened(again)
    checkpoints.drop_deleted()
    assert saved(checkpoints) == 0
    assert {found.key for found in again.waiting()} == {("t", 0), ("t", 2)}
    for found in again.waiting():
        log = again.open_found(found, config, now_ms=NOW_MS)
        assert log is not None
        checkpoints.check(log)
    assert (checkpoints.get(("t", 0)), checkpoints.get(("t", 2))) == (8, None)
    assert "t-2: the cleaner's checkpoint 11 is after the end, 10" in caplog.text
