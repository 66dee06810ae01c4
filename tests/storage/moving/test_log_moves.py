"""A log moves to another directory: copied while it grows, swapped in, killed at every step."""

import errno
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import random_uuid
from odradek.storage.checkpoints import read_offsets
from odradek.storage.data_directory import DataDirectory, DirectoryError
from odradek.storage.deletions import remove_paths
from odradek.storage.directories.log_opening import LogOpening
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.moving.future_log import FINAL_BYTES, FutureLog
from odradek.storage.moving.log_moves import KnownPartition, LogMoves
from odradek.storage.producer_entry import NO_OFFSET
from odradek.storage.retention import delete_old_segments
from odradek.storage.txn_index import AbortedTransaction
from tests.support.crashing_files import CrashedError, CrashingFiles, QuickFiles
from tests.support.dirty_logs import end_transaction
from tests.support.lengths import by_length
from tests.support.log_box import NOW_MS, batch_of, put, values_from
from tests.support.timer import Timer

TOPIC_ID = random_uuid()
KEY = ("orders", 0)
SIZE = len(batch_of(b"v"))


@dataclass
class Life:
    """One life of a node with two directories; `assigned` is what its metadata says."""

    root: Path
    files: Files = field(default_factory=QuickFiles)
    assigned: str | None = "one"
    known: bool = True

    def __post_init__(self) -> None:
        settings = {"log.dirs": f"{self.root}/one,{self.root}/two"}
        self.topic_config = TopicConfig(internal_segment_bytes=3 * SIZE)
        self.timer = Timer()
        self.manager = LogManager.open(
            BrokerConfig.from_texts(settings),
            files=self.files,
            timer_ms=self.timer,
            report=lambda line: None,
        )
        self.moves = LogMoves(self.manager, self.files)

    def load(self) -> "Life":
        self.manager.load_logs(
            lambda _: self.topic_config,
            now_ms=NOW_MS,
            assigned=lambda key: getattr(self._known(*key), "directory_id", None),
        )
        self.moves.handle_found_futures(self._known, lambda _: self.topic_config, NOW_MS)
        return self

    def _known(self, topic: str, partition: int) -> KnownPartition | None:
        if not self.known:
            return None
        return KnownPartition(
            TOPIC_ID, self.directory(self.assigned).directory_id if self.assigned else None
        )

    def directory(self, name: str) -> DataDirectory:
        return next(one for one in self.manager.directories if one.path.name == name)

    def create(self) -> PartitionLog:
        return self.manager.create(
            *KEY,
            TOPIC_ID,
            self.topic_config,
            now_ms=NOW_MS,
            directory_id=self.directory("one").directory_id,
        )

    @property
    def log(self) -> PartitionLog:
        return self.manager.get(*KEY)

    @property
    def place(self) -> str:
        return self.manager.directory_of(self.log).path.name

    def copy(self, future: FutureLog, meanwhile: Callable[[], object] = lambda: None) -> None:
        while (plan := future.next_copy()) is not None:
            plan.run()
            future.note(plan)
            meanwhile()

    def move(
        self, future: FutureLog | None = None, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """The whole way to directory two; `meanwhile` is called whenever others have a turn."""
        if future is None:
            future = self.moves.begin(self.log, self.directory("two"))
            future.prepare()
        self.copy(future, meanwhile)
        plan = future.name_active()
        assert plan is not None
        plan.run()
        future.note(plan)
        self.manager.write_log_starts()
        self.assigned = "two"
        meanwhile()
        self.copy(future, meanwhile)
        self.moves.promote(future)

    def kill(self) -> None:
        for directory in self.manager.directories:
            directory.unlock()

    def names(self, place: str) -> list[str]:
        """The log's directories there, without unique ids."""
        names = [path.name for path in (self.root / place).iterdir() if path.is_dir()]
        return sorted(f"{name.split('.')[0]}{name[name.rfind('-') :]}" for name in names)


def segments_of(log: PartitionLog) -> dict[str, bytes]:
    """Every file of the log, but the holes of the active indexes."""
    log.segments.active.sync_targets()
    return {
        path.name: path.read_bytes().rstrip(b"\0")
        for path in log.directory.iterdir()
        if path.suffix in {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    }


def test_a_moved_log_is_the_same_to_the_byte_and_goes_on(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    log = life.create()
    for n in range(8):
        put(log, b"%d" % n, producer=(7, 0, n))
    before = segments_of(log)
    life.move()
    assert (life.place, life.names("one"), life.names("two")) == (
        "two",
        ["orders-0-delete"],
        ["orders-0-0"],
    )
    assert log is life.log
    assert segments_of(log) == before
    assert (log.directory / "partition.metadata").exists()
    for n in range(8, 16):
        put(log, b"%d" % n, producer=(7, 0, n))
    assert values_from(log) == [b"%d" % n for n in range(16)]
    again = log.append(batch_of(b"12", producer=(7, 0, 12)), now_ms=NOW_MS)
    assert (again.is_duplicate, again.base_offset) == (True, 12)
    life.manager.close(now_ms=NOW_MS)
    found = Life(tmp_path, assigned="two").load()
    assert values_from(found.log) == [b"%d" % n for n in range(16)]
    assert found.log.producers.producers[7].txn_first_offset == NO_OFFSET
    found.kill()


def test_what_is_appended_while_a_log_moves_moves_too(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    log = life.create()
    for n in range(7):
        put(log, b"%d" % n)
    expected = [b"%d" % n for n in range(7)]

    def append() -> None:
        if len(expected) < 40:
            put(log, b"%d" % len(expected))
            expected.append(b"%d" % len(expected))

    life.move(meanwhile=append)
    assert len(expected) > 10
    assert values_from(log) == expected
    life.kill()
    found = Life(tmp_path, assigned="two").load()
    assert values_from(found.log) == expected
    found.kill()


def test_a_slice_that_is_being_sent_outlives_the_move(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    log = life.create()
    put(log, b"first")
    sent = log.read(0, 1000, at_least_one_batch=True)
    life.move()
    life.timer.ms = 10**9
    remove_paths(Files(), life.manager.deletions.take_due())
    assert life.names("one") == []
    assert b"first" in life.files.pread(sent.file, sent.size_bytes, sent.position)
    life.kill()


def test_segments_that_retention_deletes_meanwhile_do_not_come_back(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    log = life.create()
    for n in range(12):
        put(log, b"%x" % n)
    deleted = iter([4, 9])

    def delete() -> None:
        offset = next(deleted, None)
        if offset is not None:
            log.increment_log_start_offset(offset)
            delete_old_segments(log, NOW_MS)

    life.move(meanwhile=delete)
    assert (log.log_start_offset, log.segments.base_offsets) == (9, [9])
    life.manager.write_log_starts()
    names = {path.name for path in log.directory.glob("*.log")}
    assert names == {f"{9:020d}.log"}
    life.timer.ms = 10**9
    remove_paths(Files(), life.manager.deletions.take_due())
    assert not list(log.directory.glob("*.deleted"))
    life.kill()
    found = Life(tmp_path, assigned="two").load()
    assert values_from(found.log) == [b"9", b"a", b"b"]
    found.kill()


def test_lag_and_size_tell_how_far_a_move_is(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    log = life.create()
    for n in range(8):
        put(log, b"%d" % n)
    future = life.moves.begin(log, life.directory("two"))
    told = [(future.lag, future.size_bytes)]
    life.copy(future, lambda: told.append((future.lag, future.size_bytes)))
    assert told == [(8, 0), (5, 3 * SIZE), (2, 6 * SIZE)]
    plan = future.name_active()
    assert plan is not None
    plan.run()
    future.note(plan)
    assert (future.lag, future.size_bytes) == (0, log.size_bytes)
    life.kill()


def test_a_segment_gets_its_name_only_if_those_before_it_are_there(tmp_path: Path) -> None:
    """A power cut may shorten the log, so that the copy is the longer one."""
    life = Life(tmp_path).load()
    log = life.create()
    put(log, b"a")
    future = life.moves.begin(log, life.directory("two"))
    life.copy(future)
    log.roll(NOW_MS)
    put(log, b"b")
    assert future.name_active() is None
    life.copy(future)
    assert future.name_active() is not None
    life.kill()


def test_much_of_the_active_segment_is_copied_before_the_swap(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.topic_config = TopicConfig()
    life.load()
    log = life.create()
    while log.size_bytes <= 2 * FINAL_BYTES:
        put(log, bytes(FINAL_BYTES // 4))
    future = life.moves.begin(log, life.directory("two"))
    life.copy(future)
    assert log.size_bytes - future.size_bytes <= FINAL_BYTES
    life.move(future)
    assert len(values_from(log)) == log.log_end_offset
    life.kill()


def test_a_dropped_move_leaves_the_log_where_it_is(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    put(life.create(), b"a")
    future = life.moves.begin(life.log, life.directory("two"))
    life.copy(future)
    life.manager.drop_future(KEY)
    assert (future.is_cancelled, life.place, life.names("two")) == (
        True,
        "one",
        ["orders-0-delete"],
    )
    life.move()
    assert life.place == "two"
    life.kill()


def test_deleting_a_topic_ends_its_move(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    life.create()
    future = life.moves.begin(life.log, life.directory("two"))
    life.manager.delete([KEY])
    assert future.is_cancelled
    assert (life.names("one"), life.names("two")) == (["orders-0-delete"], ["orders-0-delete"])
    life.kill()


@pytest.mark.parametrize("has_old_log", [False, True])
def test_what_is_recovered_of_a_future_is_synced_before_it_is_read(
    tmp_path: Path, has_old_log: bool
) -> None:
    life = Life(tmp_path)
    life.topic_config = TopicConfig(flush_messages=2)
    log = life.load().create()
    if has_old_log:
        shutil.copytree(log.directory, tmp_path / "old")
    put(log, b"a", b"b")  # the process dies before this is synced
    life.kill()
    log.directory.rename(tmp_path / "two" / f"orders-0.{random_uuid().hex()}-future")
    if has_old_log:
        (tmp_path / "old").rename(log.directory)
    life = Life(tmp_path, assigned="two")
    life.topic_config = TopicConfig(flush_messages=2)
    due: list[PartitionLog] = []
    life.manager.on_flush_due = due.append
    log = life.load().log
    assert (life.place, due, log.high_watermark) == ("two", [log], 0)
    log.flush(NOW_MS)
    assert values_from(log) == [b"a", b"b"]
    life.kill()


def test_a_copy_that_a_kill_interrupted_goes_on_where_it_was(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    log = life.create()
    for n in range(9):
        put(log, b"%d" % n)
    future = life.moves.begin(log, life.directory("two"))
    plan = future.next_copy()
    assert plan is not None
    plan.run()
    torn = future.path / f"{3:020d}.log.cleaned"
    torn.write_bytes(b"half a batch")
    life.kill()
    life = Life(tmp_path).load()
    found = life.manager.futures[KEY]
    assert (life.place, found.path, found.size_bytes) == ("one", future.path, 3 * SIZE)
    assert not torn.exists()
    life.move(found)
    assert (life.place, values_from(life.log)) == ("two", [b"%d" % n for n in range(9)])
    life.kill()


def test_a_copy_of_other_records_is_made_anew(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    log = life.create()
    for n in range(9):
        put(log, b"%d" % n)
    future = life.moves.begin(log, life.directory("two"))
    life.copy(future)
    copied = future.path / f"{0:020d}.log"
    copied.write_bytes(copied.read_bytes()[:-1] + b"!")
    life.kill()
    life = Life(tmp_path).load()
    assert life.manager.futures[KEY].size_bytes == 0
    life.move(life.manager.futures[KEY])
    assert values_from(life.log) == [b"%d" % n for n in range(9)]
    life.kill()


def test_a_future_of_no_topic_is_put_aside(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    life.create()
    life.moves.begin(life.log, life.directory("two"))
    life.kill()
    life = Life(tmp_path, known=False).load()
    assert (life.names("two"), life.manager.futures) == (["orders-0-stray"], {})
    life.kill()


def test_a_log_that_is_only_there_as_a_future_is_the_log(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    put(life.create(), b"a")
    life.manager.close(now_ms=NOW_MS)
    live = tmp_path / "one" / "orders-0"
    live.rename(tmp_path / "two" / "orders-0.0123456789abcdef0123456789abcdef-future")
    life = Life(tmp_path).load()
    assert (life.place, values_from(life.log)) == ("two", [b"a"])
    life.kill()


def test_a_future_that_cannot_be_opened_does_not_end_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> PartitionLog:
        raise CorruptRecordError("it is damaged")

    monkeypatch.setattr(LogOpening, "open_future", damaged)
    life = Life(tmp_path).load()
    put(life.create(), b"a")
    life.manager.close(now_ms=NOW_MS)
    live, future = tmp_path / "one" / "orders-0", f"orders-0.{random_uuid().hex()}-future"
    (tmp_path / "two" / future).mkdir()
    life = Life(tmp_path, assigned="two").load()
    assert (life.place, values_from(life.log)) == ("one", [b"a"])
    life.manager.close(now_ms=NOW_MS)
    (tmp_path / "two" / future).rmdir()
    live.rename(tmp_path / "two" / future)
    life = Life(tmp_path).load()
    with pytest.raises(ApiError, match="it is damaged"):
        life.create()
    assert (tmp_path / "two" / "orders-0").is_dir()
    life.kill()


def test_a_longer_future_is_the_log_also_if_the_old_one_cannot_be_renamed(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    put(life.create(), b"a")
    life.log.flush(NOW_MS)
    live = tmp_path / "one" / "orders-0"
    shutil.copytree(live, tmp_path / "shorter")
    put(life.log, b"b")
    life.manager.close(now_ms=NOW_MS)
    live.rename(tmp_path / "two" / f"orders-0.{random_uuid().hex()}-future")
    (tmp_path / "shorter").rename(live)

    class Broken(QuickFiles):
        def rename(self, source: Path, target: Path) -> None:
            if target.name.endswith("-delete"):
                raise OSError(errno.EIO, "broken", str(source))
            super().rename(source, target)

    life = Life(tmp_path, Broken(), assigned="two").load()
    assert (life.place, values_from(life.log)) == ("two", [b"a", b"b"])
    assert list(life.manager.offline) == [tmp_path / "one"]
    life.kill()


def test_an_aborted_transaction_stays_so_if_a_move_is_stopped_before_its_end(
    tmp_path: Path,
) -> None:
    """The copy has all batches, the metadata names its directory, and the stop is clean."""
    life = Life(tmp_path).load()
    batch = batch_of(b"aborted", producer=(7, 0, 0), is_transactional=True)
    life.create().append(batch, now_ms=NOW_MS, transaction_verified=True)
    end_transaction(life.log, 7, 1, commit=False)
    future = life.moves.begin(life.log, life.directory("two"))
    future.prepare()
    plan = future.name_active()
    assert plan is not None
    plan.run()
    assert (future.path / f"{0:020d}.txnindex").exists()  # Apache Kafka makes it the log
    life.manager.close(now_ms=NOW_MS)
    life = Life(tmp_path, assigned="two").load()
    assert [each.first_offset for each in aborted_in(life.log)] == [0]
    life.move(life.manager.futures[KEY])
    assert [each.first_offset for each in aborted_in(life.log)] == [0]
    life.manager.close(now_ms=NOW_MS)
    life = Life(tmp_path, assigned="two").load()
    assert life.place == "two"
    assert [each.first_offset for each in aborted_in(life.log)] == [0]
    life.kill()


def aborted_in(log: PartitionLog) -> list[AbortedTransaction]:
    return log.read_committed(0, 1 << 20, at_least_one_batch=True).aborted


@pytest.mark.parametrize("lost", [0, 1])
def test_a_power_cut_that_takes_the_new_name_of_the_old_directory_only(
    tmp_path: Path, lost: int
) -> None:
    """Then both directories have the log's name. `lost`: batches that the copy does not have."""
    life = Life(tmp_path).load()
    for value in (b"a", b"b"):
        put(life.create() if value == b"a" else life.log, value)
    life.move()
    [old] = (tmp_path / "one").glob("*-delete")
    old.rename(tmp_path / "one" / "orders-0")
    if lost:
        path = tmp_path / "two" / "orders-0" / f"{0:020d}.log"
        path.write_bytes(path.read_bytes()[:SIZE])
    life.kill()
    life = Life(tmp_path, assigned="two").load()
    assert values_from(life.log) == [b"a", b"b"]
    life.move(life.manager.futures[KEY])
    assert (life.place, values_from(life.log)) == ("two", [b"a", b"b"])
    life.kill()


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_a_copy_that_cannot_be_renamed_after_a_power_cut_takes_only_its_directory_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    life = Life(tmp_path).load()
    put(life.create(), b"a")
    other = ("payments", 0)
    life.manager.create(
        *other,
        TOPIC_ID,
        life.topic_config,
        now_ms=NOW_MS,
        directory_id=life.directory("two").directory_id,
    )
    life.move()
    [old] = (tmp_path / "one").glob("*-delete")
    old.rename(tmp_path / "one" / "orders-0")
    life.kill()
    files = QuickFiles()

    def refuse(source: Path, target: Path) -> None:
        raise OSError(error, "broken", str(source))

    monkeypatch.setattr(files, "rename", refuse)
    life = Life(tmp_path, files=files, assigned="two")
    two = life.directory("two").directory_id
    life.manager.load_logs(
        lambda _: life.topic_config,
        now_ms=NOW_MS,
        may_wait=lambda found: found.topic == "payments",
        assigned=lambda _: two,
    )
    assert list(life.manager.offline) == [tmp_path / "two"]
    assert (life.place, values_from(life.log)) == ("one", [b"a"])
    assert life.manager.waiting() == []  # the other log is offline with its directory
    life.kill()


def test_two_logs_of_a_partition_after_a_clean_stop_are_refused(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    put(life.create(), b"a")
    life.manager.close(now_ms=NOW_MS)
    shutil.copytree(tmp_path / "one" / "orders-0", tmp_path / "two" / "orders-0")
    life = Life(tmp_path, assigned="two")
    with pytest.raises(DirectoryError, match=r"orders-0 is in .* and in .*: remove one"):
        life.load()
    life.kill()


def test_a_name_without_room_for_the_suffix_cannot_be_moved(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    log = life.manager.create("l" * 240, 0, TOPIC_ID, life.topic_config, now_ms=NOW_MS)
    with pytest.raises(ApiError) as caught:
        life.moves.begin(log, life.directory("two"))
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    life.kill()


class NoKernelCopy(QuickFiles):
    """A disk that fails one of the two files of a copy."""

    broken: Path | None = None

    def copy_range(self, source: OpenFile, target: OpenFile, size: int, position: int) -> None:
        if self.broken is not None and target.path.is_relative_to(self.broken):
            raise OSError(errno.ENOSPC, "full", str(target.path))
        super().copy_range(source, target, size, position)


def test_a_full_disk_at_the_swap_leaves_the_log_as_it_was(tmp_path: Path) -> None:
    files = NoKernelCopy()
    life = Life(tmp_path, files=files).load()
    log = life.create()
    put(log, b"a")
    future = life.moves.begin(log, life.directory("two"))
    life.copy(future)
    files.broken = tmp_path / "two"
    with pytest.raises(OSError, match="full"):
        life.moves.promote(future)
    put(log, b"b")
    assert (life.place, values_from(log), life.names("one")) == (
        "one",
        [b"a", b"b"],
        ["orders-0-0"],
    )
    life.kill()


@pytest.mark.slow
def test_a_kill_at_any_step_of_a_move_loses_nothing(tmp_path: Path) -> None:
    limit, step = 0, by_length(3, 1)
    while not survived_a_kill_at(tmp_path / str(limit), limit):
        limit += step
    assert limit > 100


def survived_a_kill_at(root: Path, limit: int) -> bool:
    """Whether the move was over before so many changes; if not, all is there after a restart."""
    root.mkdir()
    life = Life(root).load()
    log = life.create()
    for n in range(8):
        put(log, b"%d" % n)
    log.increment_log_start_offset(1)
    life.manager.write_log_starts()
    life.manager.close(now_ms=NOW_MS)
    dying = Life(root).load()
    written = [b"%d" % n for n in range(1, 8)]
    files = CrashingFiles(limit)
    use(dying, files)

    def append() -> None:
        put(dying.log, b"%d" % (len(written) + 1))
        written.append(b"%d" % (len(written) + 1))

    is_over = False
    try:
        turns = iter(range(3))
        dying.manager.write_log_starts()
        dying.move(meanwhile=lambda: append() if next(turns, None) is not None else None)
        dying.manager.write_log_starts()
        is_over = True
    except CrashedError:
        pass
    dying.kill()
    found = Life(root, assigned=dying.assigned).load()
    live = [path for path in root.glob("*/orders-0") if path.is_dir()]
    assert live == [found.log.directory], limit
    assert values_from(found.log)[: len(written)] == written, limit
    if KEY in found.manager.futures:
        found.move(found.manager.futures[KEY])
        assert values_from(found.log)[: len(written)] == written, limit
    found.kill()
    return is_over


def use(life: Life, files: Files) -> None:
    """Let everything of that life go through other files from now on."""
    log = life.log
    for owner in (life.manager, life.moves, log, log.epochs, log.producers):
        owner._files = files  # type: ignore[attr-defined] # a private place, the same in all
    for segment in log.segments:
        segment.files = files
        segment.release_files()


def test_the_checkpoints_speak_of_a_log_on_its_way(tmp_path: Path) -> None:
    life = Life(tmp_path).load()
    log = life.create()
    for n in range(9):
        put(log, b"%d" % n)
    log.increment_log_start_offset(1)
    future = life.moves.begin(log, life.directory("two"))
    life.copy(future)
    life.manager.write_recovery_points()
    life.manager.write_log_starts()
    two, files = tmp_path / "two", Files()
    assert read_offsets(files, two / "recovery-point-offset-checkpoint") == {KEY: 6}
    assert read_offsets(files, two / "log-start-offset-checkpoint") == {KEY: 1}
    life.kill()
