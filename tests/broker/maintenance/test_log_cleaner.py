"""The log cleaner as a service: choosing, cleaning, setting aside, giving way to others."""

import errno
import logging
import os
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.maintenance.cleaning import cleaning_round
from odradek.broker.processes.messages import CleaningEnding, CleaningFailed
from odradek.storage.checkpoints import read_offsets
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from odradek.storage.cleaning.task import CleaningTask
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from tests.support.cleaner_rig import (
    CleanerRig,
    PlayedPool,
    PlayedWorker,
    Ruin,
    SilenceError,
    fill,
    left_in,
    newest,
    until,
)

MakeRig = Callable[..., CleanerRig]
IsRefused = Callable[[Path, Path], bool]


@pytest.fixture
async def make_rig(tmp_path: Path) -> AsyncIterator[MakeRig]:
    made = []

    def make(directories: int = 1, ruin: Ruin | None = None, **options: object) -> CleanerRig:
        paths = [tmp_path / f"data-{number}" for number in range(directories)]
        if ruin is not None:
            options["pool"] = partial(PlayedPool, ruin=ruin)
        made.append(CleanerRig(paths, **options))
        return made[-1]

    yield make
    for rig in made:
        await rig.close()


def checkpoint(rig: CleanerRig, number: int = 0) -> dict[tuple[str, int], int]:
    path = Path(rig.config.log_dirs[number]) / "cleaner-offset-checkpoint"
    return read_offsets(Files(), path)


def save_checkpoint(rig: CleanerRig, offsets: dict[tuple[str, int], int]) -> None:
    CleanerCheckpoints(rig.manager, rig.files).save(rig.manager.directories[0], offsets)
    rig.cleaner = rig.new_cleaner()


def unfinished(log: PartitionLog) -> list[str]:
    names = Files().list_directory(log.directory)
    return [name for name in names if name.endswith((".cleaned", ".swap"))]


async def looked(rig: CleanerRig) -> None:
    """It has looked at all logs, and does nothing."""
    await until(lambda: rig.cleaner.status().checked_at_ms is not None)
    await until(lambda: not rig.cleaner.status().cleaning)


def failing(name: str, ending: CleaningEnding) -> Ruin:
    return lambda task: ending if task.name == name else None


def silent(task: CleaningTask) -> "CleaningEnding | None":
    raise SilenceError


async def test_a_dirty_log_is_cleaned_and_the_checkpoint_says_up_to_where(
    make_rig: MakeRig,
) -> None:
    rig = make_rig()
    log = rig.log()
    fill(log)
    rig.cleaner.start()
    assert "100% of the bytes: the log is due" in rig.cleaner.why_not_cleaned("t", 0)
    await until(lambda: checkpoint(rig) == {("t", 0): 300})
    assert left_in(log) == newest()
    status = rig.cleaner.status()
    assert status.last_round is not None
    assert (status.last_round.stats.messages_read, status.last_round.end_offset) == (300, 300)
    assert (status.last_error, status.uncleanable) == (None, {})
    await looked(rig)
    assert "nothing after offset 300" in rig.cleaner.why_not_cleaned("t", 0)


async def test_no_process_is_started_for_what_is_not_due(make_rig: MakeRig) -> None:
    rig = make_rig()
    fill(rig.log("empty"), rounds=0)
    fill(rig.log("clean-enough", min_cleanable_dirty_ratio="1.0"))
    fill(rig.log("young", min_compaction_lag_ms="1000"))
    fill(rig.log("deleted", cleanup_policy="delete"))
    rig.cleaner.start()
    await looked(rig)
    assert rig.pool.taken == 0
    assert checkpoint(rig) == {}
    why = rig.cleaner.why_not_cleaned
    assert "nothing after offset 0" in why("empty", 0)
    assert "100% of the bytes, which is not over" in why("clean-enough", 0)
    assert "younger than min.compaction.lag.ms (1000)" in why("young", 0)
    assert why("deleted", 0) == "its cleanup.policy has no compact"


async def test_the_dirtiest_log_comes_first_and_one_that_waited_too_long_at_all(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "odradek.cleaner")
    rig = make_rig()
    fill(rig.log("half"))
    fill(rig.log("late", min_cleanable_dirty_ratio="0.9", max_compaction_lag_ms="5"))
    save_checkpoint(rig, {("half", 0): 100, ("late", 0): 200})
    fill(rig.log("dirty"))
    rig.now_ms += 6
    rig.cleaner.start()
    await until(lambda: len(checkpoint(rig)) == 3 and set(checkpoint(rig).values()) == {300})
    lines = [line for line in caplog.messages if "cleaned offsets" in line]
    assert [line.partition("-")[0] for line in lines] == ["dirty", "half", "late"]


async def test_a_checkpoint_before_the_log_start_is_set_right(make_rig: MakeRig) -> None:
    rig = make_rig()
    log = rig.log("t", min_cleanable_dirty_ratio="1.0", cleanup_policy="compact,delete")
    fill(log)
    save_checkpoint(rig, {("t", 0): 10})
    log.increment_log_start_offset(150)
    rig.cleaner.start()
    await until(lambda: checkpoint(rig) == {("t", 0): 150})


async def test_retention_of_compacted_logs_happens_here(make_rig: MakeRig) -> None:
    rig = make_rig()
    both = rig.log("both", cleanup_policy="compact,delete", min_cleanable_dirty_ratio="1.0")
    plain = rig.log("plain", cleanup_policy="delete")
    for log in (both, plain):
        log.update_config(log.config.replace(retention_ms=1000))
        fill(log)
    rig.now_ms += 1001
    assert not rig.cleaner.is_checked_at_intervals(both)
    assert rig.cleaner.is_checked_at_intervals(plain)
    rig.cleaner.start()
    await until(lambda: both.log_start_offset == 300)
    assert plain.log_start_offset == 0


async def test_a_log_that_is_cleaned_gets_no_retention(make_rig: MakeRig) -> None:
    rig = make_rig(ruin=silent)
    log = rig.log("t", cleanup_policy="compact,delete")
    fill(log)
    rig.cleaner.start()
    await until(lambda: rig.cleaner.status().cleaning)
    log.update_config(rig.topic_config({"cleanup.policy": "delete"}))
    assert not rig.cleaner.is_checked_at_intervals(log)
    await rig.cleaner.cancel_rounds([("t", 0)])
    assert rig.cleaner.is_checked_at_intervals(log)


# --- failures


async def test_a_log_that_cannot_be_read_is_set_aside_until_a_restart(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    rig = make_rig()
    bad, good = rig.log("bad"), rig.log("good")
    fill(bad, rounds=4)
    fill(good)
    with (bad.directory / f"{0:020d}.log").open("r+b") as file:
        file.seek(8)
        file.write(bytes(4))  # a batch of no length
    rig.cleaner.start()
    await until(lambda: checkpoint(rig) == {("good", 0): 300})
    await looked(rig)
    [(path, reasons)] = rig.cleaner.status().uncleanable.items()
    assert path == rig.manager.directories[0].path
    assert "byte 0: length 0 is too small for a batch" in reasons["bad", 0]
    assert "it is not cleaned until a restart: " in rig.cleaner.why_not_cleaned("bad", 0)
    assert unfinished(bad) == []
    told = [line for line in caplog.messages if line.startswith("bad-0 is not cleaned until")]
    assert len(told) == 1
    await rig.cleaner.close()
    rig.cleaner = rig.new_cleaner()
    assert rig.cleaner.status().uncleanable == {}


async def test_a_full_disk_is_waited_for(make_rig: MakeRig) -> None:
    errors = [OSError(errno.ENOSPC, "No space left on device")]

    def ruin(task: CleaningTask) -> "CleaningEnding | None":
        return CleaningFailed("full", error=errors.pop()) if errors else None

    rig = make_rig(ruin=ruin)
    log = rig.log()
    fill(log)
    rig.cleaner.start()
    await until(lambda: "No space left" in str(rig.cleaner.status().last_error))
    assert log.is_online
    rig.now_ms += 1000
    await until(lambda: checkpoint(rig) == {("t", 0): 300})


async def test_an_error_of_the_disk_takes_only_its_directory_offline(make_rig: MakeRig) -> None:
    broken = CleaningFailed("broken", error=OSError(errno.EIO, "Input/output error"))
    rig = make_rig(2, ruin=failing("bad-0", broken))
    bad, good = rig.log("bad"), rig.log("good")
    assert rig.manager.directory_of(bad) is not rig.manager.directory_of(good)
    fill(bad, rounds=4)
    fill(good)
    rig.cleaner.start()
    await until(lambda: checkpoint(rig, 1) == {("good", 0): 300})
    assert (bad.is_online, good.is_online) == (False, True)
    assert rig.cleaner.why_not_cleaned("bad", 0) == "its log directory is offline"


async def test_a_file_that_is_missing_costs_one_log_not_its_directory(make_rig: MakeRig) -> None:
    gone = CleaningFailed("gone", error=FileNotFoundError(errno.ENOENT, "No such file", "x"))
    rig = make_rig(ruin=failing("bad-0", gone))
    log = rig.log("bad")
    fill(log)
    rig.cleaner.start()
    await until(lambda: rig.cleaner.status().uncleanable)
    assert log.is_online


async def test_what_nobody_expected_is_told_with_its_traceback(
    make_rig: MakeRig, caplog: pytest.LogCaptureFixture
) -> None:
    odd = CleaningFailed("ZeroDivisionError: x", traceback="Traceback of it")
    rig = make_rig(ruin=failing("t-0", odd))
    fill(rig.log())
    rig.cleaner.start()
    await until(lambda: rig.cleaner.status().uncleanable)
    assert "ZeroDivisionError" in rig.cleaner.why_not_cleaned("t", 0)
    assert "Traceback of it" in caplog.messages


async def test_a_swap_that_fails_leaves_the_log_to_the_next_round(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig()
    log = rig.log()
    fill(log)
    errors = [OSError(errno.ENOSPC, "No space left on device")]
    rename = rig.files.rename

    def failing_once(source: Path, target: Path) -> None:
        if errors and target.suffix == ".swap":
            raise errors.pop()
        rename(source, target)

    monkeypatch.setattr(rig.files, "rename", failing_once)
    rig.cleaner.start()
    await until(lambda: checkpoint(rig) == {("t", 0): 300})
    assert errors == []
    assert "could not swap in cleaned segments" in str(rig.cleaner.status().last_error)
    assert left_in(log) == newest()
    assert unfinished(log) == []


class Refusing:
    """Renames and syncs of a directory's names that the system refuses until it is let go."""

    def __init__(self, files: Files, is_refused: IsRefused, error: int) -> None:
        self.is_refused, self.error = is_refused, error
        self.count = 0
        self.done = False
        self.files, self.real_rename, self.real_sync = files, files.rename, files.fsync_directory

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(self.files, "rename", self.rename)
        monkeypatch.setattr(self.files, "fsync_directory", self.sync)

    def _check(self, source: Path, target: Path) -> None:
        if not self.done and self.is_refused(source, target):
            self.count += 1
            raise OSError(self.error, os.strerror(self.error), str(source))

    def rename(self, source: Path, target: Path) -> None:
        self._check(source, target)
        self.real_rename(source, target)

    def sync(self, path: Path) -> None:
        self._check(path, path)
        self.real_sync(path)


REFUSED = {
    "the sync of the new names": (lambda source, target: source.name == "t-0", errno.EMFILE),
    "an old segment's index": (
        lambda source, target: target.name == f"{0:020d}.index.deleted",
        errno.ENOSPC,
    ),
    "an old segment": (lambda source, target: target.name.endswith(".log.deleted"), errno.ENOSPC),
    "a new segment": (lambda source, target: source.name.endswith(".log.swap"), errno.EDQUOT),
    "a new segment's index": (
        lambda source, target: source.name.endswith(".timeindex.swap"),
        errno.ENOSPC,
    ),
}


@pytest.fixture(params=REFUSED)
async def refusing(
    request: pytest.FixtureRequest, make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> tuple[CleanerRig, Refusing]:
    monkeypatch.setattr(cleaning_round, "RETRY_SECONDS", 0.01)
    rig = make_rig()
    refusing = Refusing(rig.files, *REFUSED[request.param])
    refusing.install(monkeypatch)
    return rig, refusing


async def test_a_swap_that_is_refused_half_way_goes_on_later_and_the_log_is_read_meanwhile(
    refusing: tuple[CleanerRig, Refusing],
) -> None:
    rig, disk = refusing
    log = rig.log()
    fill(log)
    before = left_in(log)
    rig.cleaner.start()
    await until(lambda: disk.count > 2)
    assert log.is_online
    log.segments[0].release_files()  # as when too many are open
    assert left_in(log) == before
    disk.done = True
    await until(lambda: checkpoint(rig) == {("t", 0): 300})
    assert left_in(log) == newest()
    assert unfinished(log) == []


async def test_a_stop_in_a_swap_that_is_refused_leaves_it_to_the_recovery_of_the_next_start(
    refusing: tuple[CleanerRig, Refusing],
) -> None:
    rig, disk = refusing
    log = rig.log()
    fill(log)
    rig.cleaner.start()
    await until(lambda: disk.count)
    await rig.cleaner.close()
    disk.done = True
    rig.manager.close(now_ms=rig.now_ms)
    assert not (log.directory.parent / ".kafka_cleanshutdown").exists()
    again = CleanerRig([log.directory.parent])
    assert left_in(again.manager.get("t", 0))[-100:] == newest()
    assert unfinished(log) == []
    await again.close()


async def test_a_directory_whose_sync_fails_goes_offline_and_the_round_ends(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig()
    log = rig.log()
    fill(log)

    def failing_sync(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(rig.files, "fsync_directory", failing_sync)
    rig.cleaner.start()
    await until(lambda: not log.is_online)
    await looked(rig)
    assert "offline" in str(rig.cleaner.status().last_error)


# --- giving way


async def test_who_deletes_a_log_waits_until_it_is_no_longer_cleaned(make_rig: MakeRig) -> None:
    silenced = []

    def ruin(task: CleaningTask) -> "CleaningEnding | None":
        if silenced:
            raise SilenceError
        return None

    rig = make_rig(ruin=ruin)
    log, other = rig.log(), rig.log("other")
    for each in (log, other):
        fill(each)
    rig.cleaner.start()
    await until(lambda: checkpoint(rig) == {("other", 0): 300, ("t", 0): 300})
    silenced.append(True)
    fill(log)
    await until(lambda: [one.partition for one in rig.cleaner.status().cleaning] == [("t", 0)])
    (log.directory / f"{0:020d}.log.cleaned").touch()  # what the process has begun to write
    async with rig.cleaner.paused([("t", 0)]):
        assert rig.cleaner.status().cleaning == []
        assert unfinished(log) == []
        assert not rig.cleaner.is_checked_at_intervals(log)
        rig.manager.delete([("t", 0)])
    assert checkpoint(rig) == {("other", 0): 300}


async def test_a_round_that_is_cancelled_after_its_process_has_ended_the_task_does_not_kill_it(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig()
    log = rig.log()
    fill(log)
    killed = []

    def cancel_then(worker: PlayedWorker, *, is_idle: bool) -> None:
        assert rig.cleaner.status().cleaning
        rig.cleaner.directory_failed(rig.manager.directory_of(log))

    monkeypatch.setattr(PlayedWorker, "kill", lambda worker: killed.append(worker))
    monkeypatch.setattr(rig.pool, "give_back", cancel_then)
    rig.cleaner.start()
    await until(lambda: checkpoint(rig) == {("t", 0): 300})
    assert killed == []


async def test_a_log_that_was_only_held_is_cleaned_afterwards(make_rig: MakeRig) -> None:
    rig = make_rig()
    log = rig.log()
    async with rig.cleaner.paused([("t", 0)]):
        fill(log)
        rig.cleaner.start()
        await looked(rig)
        assert rig.cleaner.status().cleaning == []
        assert rig.cleaner.why_not_cleaned("t", 0) == "it is being deleted"
    await until(lambda: checkpoint(rig) == {("t", 0): 300})


async def test_stopping_calls_off_the_round_and_leaves_nothing_behind(make_rig: MakeRig) -> None:
    rig = make_rig(ruin=silent)
    log = rig.log()
    fill(log)
    rig.cleaner.start()
    await until(lambda: rig.cleaner.status().cleaning)
    (log.directory / f"{0:020d}.log.cleaned").touch()
    await rig.cleaner.close()
    assert unfinished(log) == []
    assert log.is_online
    assert left_in(log)[0] == (0, b"key-0")


async def test_as_many_logs_are_cleaned_at_once_as_the_settings_say(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig(ruin=silent, log_cleaner_threads="2")
    looks, due = [], rig.cleaner._choice.due

    async def counted(*arguments: Any) -> Any:
        looks.append(await due(*arguments))
        return looks[-1]

    monkeypatch.setattr(rig.cleaner._choice, "due", counted)
    for number in range(3):
        fill(rig.log("t", number))
    rig.cleaner.start()
    await until(lambda: len(looks) > 2)  # then two looks have ended
    assert len(looks[0]) == 3
    assert len(rig.cleaner.status().cleaning) == 2


async def test_nothing_is_cleaned_where_that_is_switched_off(make_rig: MakeRig) -> None:
    rig = make_rig(log_cleaner_enable="false")
    fill(rig.log())
    rig.cleaner.start()
    assert not rig.cleaner.status().is_enabled
    assert "log.cleaner.enable" in rig.cleaner.why_not_cleaned("t", 0)
