"""The logs of all directories: found after any stop, created, deleted, checkpointed."""

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek.config.broker_config import BrokerConfig
from odradek.config.topic_config import TopicConfig
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.primitives import METADATA_TOPIC_ID, random_uuid
from odradek.storage import log_manager
from odradek.storage.data_directory import DirectoryError
from odradek.storage.deletions import remove_paths
from odradek.storage.directories.log_creation import NewLog
from odradek.storage.files import Files, OpenFile
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.recovering import unflushed
from tests.storage.test_time_search import attempts
from tests.support.log_box import NOW_MS, batch_of, put, values_from
from tests.support.open_files import open_files
from tests.support.timer import Timer

TOPIC_ID = random_uuid()
SIZE = len(batch_of(b"v"))


class Disk(Files):
    """Fails reads, syncs or creations below `broken`."""

    def __init__(self) -> None:
        self.broken: Path | None = None
        self.error = errno.EIO

    def _check(self, path: Path) -> None:
        if self.broken is not None and path.is_relative_to(self.broken):
            raise OSError(self.error, "broken", str(path))

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> OpenFile:
        self._check(path)
        return super().open(path, create=create, read_only=read_only)

    def fsync(self, file: OpenFile) -> None:
        self._check(file.path)
        super().fsync(file)


class Node:
    """Log directories below `root`, and the managers that use them one after another."""

    def __init__(self, root: Path, *names: str, **settings: Any) -> None:
        self.paths = [root / name for name in names or ("data",)]
        self.disk = Disk()
        self.timer = Timer()
        self.reports: list[str] = []
        texts = {"log.dirs": ",".join(map(str, self.paths)), **settings}
        self.config = BrokerConfig.from_texts(texts)
        self.topic_config = TopicConfig(internal_segment_bytes=3 * SIZE)

    def start(self) -> LogManager:
        manager = LogManager.open(
            self.config, files=self.disk, timer_ms=self.timer, report=self.reports.append
        )
        manager.load_logs(lambda _: self.topic_config, now_ms=NOW_MS)
        return manager

    @contextmanager
    def killed(self) -> Iterator[LogManager]:
        """A manager whose process dies at the end: only its locks are released."""
        manager = self.start()
        yield manager
        for directory in manager.directories:
            directory.unlock()

    def create(self, manager: LogManager, topic: str, partition: int = 0) -> PartitionLog:
        return manager.create(topic, partition, TOPIC_ID, self.topic_config, now_ms=NOW_MS)


def code_of(action: Any) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        action()
    return caught.value.code


def test_logs_are_found_again_after_a_clean_stop_without_reading_them(tmp_path: Path) -> None:
    node = Node(tmp_path)
    manager = node.start()
    log = node.create(manager, "orders", 3)
    put(log, b"a")
    manager.close(now_ms=NOW_MS, broker_epoch=9)
    checkpoint = tmp_path / "data" / "recovery-point-offset-checkpoint"
    assert checkpoint.read_text() == "0\n1\norders 3 1\n"
    high_watermarks = tmp_path / "data" / "replication-offset-checkpoint"
    assert high_watermarks.read_text() == "0\n1\norders 3 1\n"
    manager = node.start()
    log = manager.get("orders", 3)
    assert (values_from(log), log.topic_id) == ([b"a"], TOPIC_ID)
    assert manager.directory_of(log).broker_epoch == 9
    assert node.reports == []
    manager.close(now_ms=NOW_MS)


def test_the_open_logs_of_a_topic_are_found_by_partition(tmp_path: Path) -> None:
    node = Node(tmp_path)
    manager = node.start()
    logs = {number: node.create(manager, "orders", number) for number in (0, 7)}
    other = node.create(manager, "other")
    assert manager.of_topic("orders") == logs
    manager.delete([("orders", 0)])
    assert manager.of_topic("orders") == {7: logs[7]}
    manager.delete([("orders", 7)])
    assert not manager.of_topic("orders")
    assert manager.of_topic("other") == {0: other}
    manager.close(now_ms=NOW_MS)
    assert not manager.of_topic("other")


def test_logs_are_recovered_after_a_kill_from_the_recovery_point_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unflushed, "PROGRESS_FROM_BYTES", 0)  # which segments are read is reported
    node = Node(tmp_path)
    with node.killed() as manager:
        log = node.create(manager, "orders")
        for n in range(8):
            put(log, b"%d" % n)
        plan = log.flush_plan(6)
        assert plan is not None
        plan.run()
        log.mark_flushed(plan, NOW_MS)
        manager.write_recovery_points()
    manager = node.start()
    assert values_from(manager.get("orders", 0)) == [b"%d" % n for n in range(8)]
    assert [line for line in node.reports if "segment" in line] == [
        f"{tmp_path}/data/orders-0: recovering segment 6, 0 of 1 done"
    ]
    manager.close(now_ms=NOW_MS)


def test_empty_logs_are_recovered_without_a_line_each(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with node.killed() as manager:
        for partition in range(30):
            node.create(manager, "__consumer_offsets", partition)
        log = node.create(manager, "orders")
        put(log, b"value")
    manager = node.start()
    assert [line for line in node.reports if "recovering" in line] == [
        f"recovering 31 logs after an unclean stop: 1 have {log.size_bytes} bytes to check",
        "recovering orders-0, 0 of 1 logs done",
    ]
    manager.close(now_ms=NOW_MS)


def test_where_flush_messages_is_reached_recovered_records_are_synced_before_they_are_read(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path)
    node.topic_config = TopicConfig(flush_messages=2)
    with node.killed() as manager:
        log = node.create(manager, "orders")
        put(log, b"a", b"b")  # the process dies before this is synced
    manager = LogManager.open(node.config, files=node.disk, timer_ms=node.timer)
    due: list[PartitionLog] = []
    manager.on_flush_due = due.append
    manager.load_logs(lambda _: node.topic_config, now_ms=NOW_MS)
    log = manager.get("orders", 0)
    assert due == [log]
    assert (log.high_watermark, log.log_end_offset) == (0, 2)
    log.flush(NOW_MS)
    assert values_from(log) == [b"a", b"b"]
    manager.close(now_ms=NOW_MS)


def test_a_log_start_outlives_the_stop(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with node.killed() as manager:
        log = node.create(manager, "orders")
        put(log, b"a")
        put(log, b"b")
        log.increment_log_start_offset(1)
        manager.write_log_starts()
    manager = node.start()
    assert values_from(manager.get("orders", 0)) == [b"b"]
    manager.close(now_ms=NOW_MS)


@pytest.mark.parametrize("garbage", [b"", b"\xff\xfe", b"0\n5\norders 0 1\n", b"7\n0\n", b"0\nx\n"])
def test_garbled_checkpoints_cost_only_time(tmp_path: Path, garbage: bytes) -> None:
    node = Node(tmp_path)
    with node.killed() as manager:
        put(node.create(manager, "orders"), b"a")
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        (tmp_path / "data" / name).write_bytes(garbage)
    manager = node.start()
    assert values_from(manager.get("orders", 0)) == [b"a"]
    manager.close(now_ms=NOW_MS)


def test_an_unknown_partition_is_refused(tmp_path: Path) -> None:
    manager = Node(tmp_path).start()
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(lambda: manager.get("orders", 0)) is unknown
    assert manager.find("orders", 0) is None
    manager.close(now_ms=NOW_MS)


def test_new_logs_go_where_the_fewest_are(tmp_path: Path) -> None:
    node = Node(tmp_path, "a", "b", "c")
    manager = node.start()
    for partition in range(7):
        node.create(manager, "orders", partition)
    counts = [len(list(path.glob("orders-*"))) for path in node.paths]
    assert sorted(counts) == [2, 2, 3]
    manager.close(now_ms=NOW_MS)
    manager = node.start()
    assert len(manager.logs()) == 7
    manager.close(now_ms=NOW_MS)


def test_logs_that_are_created_together_are_spread_over_the_directories(tmp_path: Path) -> None:
    node = Node(tmp_path, "a", "b", "c")
    manager = node.start()
    first = node.create(manager, "orders")
    creation = manager.begin_creation(
        [NewLog("orders", partition, TOPIC_ID, node.topic_config) for partition in range(6)],
        now_ms=NOW_MS,
    )
    creation.run()
    creation.finish()
    manager.delete([first.key])
    node.create(manager, "orders")
    assert [len(list(path.glob("orders-?"))) for path in node.paths] == [2, 2, 2]
    manager.close(now_ms=NOW_MS)


def test_a_log_that_is_being_created_gets_settings_that_change_meanwhile(tmp_path: Path) -> None:
    node = Node(tmp_path)
    manager = node.start()
    creation = manager.begin_creation(
        [NewLog("orders", 0, TOPIC_ID, node.topic_config)], now_ms=NOW_MS
    )
    creation.run()
    manager.update_config(node.config.with_dynamic({"producer.id.expiration.ms": "1000"}))
    creation.finish()
    assert manager.get("orders", 0).producers.expiration_ms == 1000
    manager.close(now_ms=NOW_MS)


def test_creating_again_gives_the_same_log_and_another_topic_id_is_refused(tmp_path: Path) -> None:
    node = Node(tmp_path)
    manager = node.start()
    log = node.create(manager, "orders")
    assert node.create(manager, "orders") is log
    other = random_uuid()
    refused = code_of(lambda: manager.create("orders", 0, other, node.topic_config, now_ms=NOW_MS))
    assert refused is ErrorCode.INCONSISTENT_TOPIC_ID
    manager.close(now_ms=NOW_MS)


# --- deletion


def test_a_deleted_log_is_removed_at_once_and_its_files_later(tmp_path: Path) -> None:
    node = Node(tmp_path)
    manager = node.start()
    log = node.create(manager, "orders")
    put(log, b"a")
    piece = log.read(0, 1000, at_least_one_batch=True)
    manager.delete([("orders", 0), ("nobody", 7)])
    assert code_of(lambda: put(log, b"b")) is ErrorCode.KAFKA_STORAGE_ERROR
    assert code_of(lambda: manager.get("orders", 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (left,) = (path.name for path in node.paths[0].glob("orders-0*"))
    assert left.startswith("orders-0.")
    assert left.endswith("-delete")
    assert Files().pread_exact(piece.file, piece.size_bytes, piece.position)
    new = node.create(manager, "orders")
    assert new.log_end_offset == 0
    node.timer.ms = 59_999
    assert manager.deletions.take_due() == []
    node.timer.ms = 60_000
    remove_paths(Files(), manager.deletions.take_due())
    assert [path.name for path in node.paths[0].glob("orders-0*")] == ["orders-0"]
    manager.close(now_ms=NOW_MS)


def test_a_new_log_does_not_inherit_the_checkpoints_of_a_deleted_one(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with node.killed() as manager:
        log = node.create(manager, "orders")
        for _ in range(9):
            put(log, b"old")
        log.increment_log_start_offset(8)
        log.flush(NOW_MS)
        manager.write_recovery_points()
        manager.write_log_starts()
        manager.delete([("orders", 0)])
        put(node.create(manager, "orders"), b"new")
    manager = node.start()
    assert values_from(manager.get("orders", 0)) == [b"new"]
    manager.close(now_ms=NOW_MS)


def delete_with_log_start(node: Node, manager: LogManager) -> None:
    """Delete a log; afterwards log-start-offset-checkpoint still has its log start."""
    log = node.create(manager, "orders")
    for _ in range(9):
        put(log, b"old")
    log.increment_log_start_offset(8)
    manager.write_log_starts()
    node.disk.broken = node.paths[0] / "log-start-offset-checkpoint.tmp"
    node.disk.error = errno.EMFILE
    manager.delete([("orders", 0)])


def test_a_log_is_not_created_while_a_checkpoint_has_a_deleted_one_of_its_name(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path)
    with node.killed() as manager:
        delete_with_log_start(node, manager)
        assert code_of(lambda: node.create(manager, "orders")) is ErrorCode.KAFKA_STORAGE_ERROR
        assert manager.has_postponed
        node.disk.broken = None
        put(node.create(manager, "orders"), b"new")
    manager = node.start()
    assert values_from(manager.get("orders", 0)) == [b"new"]
    manager.close(now_ms=NOW_MS)


def test_a_log_that_is_created_after_a_kill_does_not_inherit_the_checkpoints_of_a_deleted_one(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path)
    with node.killed() as manager:
        delete_with_log_start(node, manager)
    node.disk.broken = None
    with node.killed() as manager:
        put(node.create(manager, "orders"), b"new")
    manager = node.start()
    assert values_from(manager.get("orders", 0)) == [b"new"]
    manager.close(now_ms=NOW_MS)


def test_a_deletion_goes_on_after_a_restart(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with node.killed() as manager:
        node.create(manager, "orders")
        manager.delete([("orders", 0)])
    manager = node.start()
    assert manager.logs() == []
    node.timer.ms = 60_000
    remove_paths(Files(), manager.deletions.take_due())
    assert list(node.paths[0].glob("orders-0*")) == []
    manager.close(now_ms=NOW_MS)


def test_a_stray_log_is_moved_aside_and_kept(tmp_path: Path) -> None:
    node = Node(tmp_path)
    manager = node.start()
    put(node.create(manager, "orders"), b"a")
    manager.move_aside([("orders", 0)])
    (stray,) = node.paths[0].glob("orders-0*")
    assert stray.name.endswith("-stray")
    assert manager.strays == [stray]
    manager.close(now_ms=NOW_MS)
    manager = node.start()
    assert (manager.logs(), manager.strays) == ([], [stray])
    manager.close(now_ms=NOW_MS)


# --- the metadata log


def test_the_metadata_log_is_a_log_and_none_of_the_others(tmp_path: Path) -> None:
    node = Node(tmp_path)
    manager = node.start()
    metadata = manager.open_metadata_log(METADATA_TOPIC_ID, node.topic_config, now_ms=NOW_MS)
    put(metadata, b"a")
    assert manager.logs() == []
    manager.close(now_ms=NOW_MS)
    assert "__cluster" not in (node.paths[0] / "recovery-point-offset-checkpoint").read_text()
    manager = node.start()
    assert manager.logs() == []
    metadata = manager.open_metadata_log(METADATA_TOPIC_ID, node.topic_config, now_ms=NOW_MS)
    assert values_from(metadata) == [b"a"]
    manager.close(now_ms=NOW_MS)


# --- housekeeping


def test_flush_ms_asks_for_a_sync(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.topic_config = TopicConfig(flush_ms=1000)
    manager = node.start()
    log = node.create(manager, "orders")
    put(log, b"a")
    assert manager.logs_to_flush(NOW_MS) == [log]  # it was never synced
    log.flush(NOW_MS)
    put(log, b"b")
    assert manager.logs_to_flush(NOW_MS + 999) == []
    assert manager.logs_to_flush(NOW_MS + 1000) == [log]
    manager.close(now_ms=NOW_MS)


def test_inactive_segments_are_let_go_of_and_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_manager, "MAX_INACTIVE_FILES_OPEN", 1)
    node = Node(tmp_path)
    manager = node.start()
    log = node.create(manager, "orders")
    for n in range(9):
        put(log, b"%d" % n)
    wanted = values_from(log)
    manager.release_inactive_segments()
    assert [segment.has_open_file for segment in log.segments] == [False, False, True]
    assert values_from(log) == wanted
    manager.close(now_ms=NOW_MS)


def test_while_few_files_are_open_no_log_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(tmp_path)
    manager = node.start()
    log = node.create(manager, "orders")
    for _ in range(7):
        put(log, b"v")
    with monkeypatch.context() as patch:
        patch.setattr(manager._table, "open", None)  # to look at it would be an error
        manager.release_inactive_segments()
    manager.close(now_ms=NOW_MS)


def test_the_files_of_many_logs_are_closed_in_several_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_manager, "LOGS_PER_RELEASE", 2)
    node = Node(tmp_path)
    manager = node.start()
    logs = [node.create(manager, "orders", partition) for partition in range(5)]
    for log in logs:
        for _ in range(7):
            put(log, b"v")
    monkeypatch.setattr(log_manager, "MAX_INACTIVE_FILES_OPEN", 1)
    assert [manager.release_inactive_segments() for _ in range(4)] == [True, True, False, False]
    assert not any(segment.has_open_file for log in logs for segment in log.segments.inactive)
    manager.close(now_ms=NOW_MS)


def test_files_that_a_lookup_has_opened_in_vain_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_manager, "MAX_INACTIVE_FILES_OPEN", 20)
    node = Node(tmp_path)
    manager = node.start()
    log = node.create(manager, "orders")
    for n in range(3 * 40):
        put(log, b"v", timestamps=[NOW_MS + n])
    manager.close(now_ms=NOW_MS)
    manager = node.start()
    log = manager.get("orders", 0)
    before = len(open_files(tmp_path))
    attempts(log).look_up(lambda: log.offset_for_timestamp(NOW_MS + 3 * 20))
    assert len(open_files(tmp_path)) > before + 5
    manager.release_inactive_segments()
    assert len(open_files(tmp_path)) <= before
    manager.close(now_ms=NOW_MS)


def test_files_that_lookups_in_rolled_segments_have_opened_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their indexes are opened when the segments are read, not when they are rolled."""
    node = Node(tmp_path)
    manager = node.start()
    log = node.create(manager, "orders")
    for n in range(3 * 10):
        put(log, b"v", timestamps=[NOW_MS + n])
    for n in range(3 * 10):
        assert log.offset_for_timestamp(NOW_MS + n) is not None
    inactive = 3 * len(log.segments.inactive)  # a .log file and two indexes of each
    assert len(open_files(tmp_path)) > inactive
    monkeypatch.setattr(log_manager, "MAX_INACTIVE_FILES_OPEN", inactive - 1)
    manager.release_inactive_segments()
    assert not any(segment.has_open_file for segment in log.segments.inactive)
    manager.close(now_ms=NOW_MS)


def test_many_rolls_in_a_moment_do_not_keep_all_files_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_manager, "MAX_INACTIVE_FILES_OPEN", 5)
    node = Node(tmp_path)
    manager = node.start()
    log = node.create(manager, "orders")
    max_open = 0
    for day in range(0, 40 * 8, 8):  # segment.ms is seven days
        put(log, b"v", timestamps=[day * 86_400_000])
        log.flush(NOW_MS)
        max_open = max(max_open, sum(segment.has_open_file for segment in log.segments))
    assert len(log.segments) == 40
    assert max_open <= 5 + 2  # the active one, and the one before it
    assert len(values_from(log)) == 40
    manager.close(now_ms=NOW_MS)


def test_silent_producers_are_forgotten(tmp_path: Path) -> None:
    node = Node(tmp_path)
    manager = node.start()
    log = node.create(manager, "orders")
    put(log, b"a", producer=(5, 0, 0))
    log.producers.remove_expired(NOW_MS + 86_399_999)
    assert list(log.producers.producers) == [5]
    log.producers.remove_expired(NOW_MS + 86_400_000)
    assert list(log.producers.producers) == []
    manager.close(now_ms=NOW_MS)


# --- disks that fail


def test_a_failing_disk_takes_its_logs_offline_and_no_others(tmp_path: Path) -> None:
    node = Node(tmp_path, "a", "b")
    manager = node.start()
    logs = [node.create(manager, "orders", n) for n in range(4)]
    for log in logs:
        put(log, b"v")
    node.disk.broken = node.paths[0]
    hurt = [log for log in logs if log.directory.parent == node.paths[0]]
    assert code_of(lambda: hurt[0].flush(NOW_MS)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert list(manager.offline) == [node.paths[0]]
    for log in logs:
        if log in hurt:
            assert code_of(lambda log=log: put(log, b"w")) is ErrorCode.KAFKA_STORAGE_ERROR
        else:
            put(log, b"w")
    create = code_of(
        lambda: manager.create("n", 0, TOPIC_ID, node.topic_config, now_ms=NOW_MS, is_new=False)
    )
    assert create is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(ApiError) as caught:
        manager.get("n", 0)
    where = f"an offline directory: {node.paths[0]}: {manager.offline[node.paths[0]]}"
    assert caught.value.message == f"n-0 may be in {where}"
    assert node.create(manager, "new").directory.parent == node.paths[1]
    manager.close(now_ms=NOW_MS)
    assert not (node.paths[0] / ".kafka_cleanshutdown").exists()
    assert (node.paths[1] / ".kafka_cleanshutdown").exists()


def test_a_full_disk_is_not_a_broken_one(tmp_path: Path) -> None:
    node = Node(tmp_path)
    manager = node.start()
    log = node.create(manager, "orders")
    for n in range(3):
        put(log, b"%d" % n)
    node.disk.broken, node.disk.error = node.paths[0], errno.ENOSPC
    assert code_of(lambda: put(log, b"3")) is ErrorCode.KAFKA_STORAGE_ERROR  # it would roll
    node.disk.broken = None
    put(log, b"3")
    assert values_from(log) == [b"0", b"1", b"2", b"3"]
    manager.close(now_ms=NOW_MS)


def test_indexes_that_a_creation_has_left_are_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    node = Node(tmp_path)
    manager = node.start()
    left = node.paths[0] / "orders-0"
    left.mkdir()
    (left / f"{0:020d}.log").touch()
    for kind in ("index", "timeindex"):
        with (left / f"{0:020d}.{kind}").open("wb") as file:
            file.truncate(12 * 10_000)  # zeros, which look like entries
    log = node.create(manager, "orders")
    put(log, b"0")
    assert values_from(log) == [b"0"]
    assert log.segments.active.time_index.entries <= 1
    assert "rebuilding" not in caplog.text
    manager.close(now_ms=NOW_MS)


def test_a_deletion_that_fails_for_one_partition_goes_on_with_the_others(tmp_path: Path) -> None:
    class StubbornFiles(Disk):
        def rename(self, source: Path, target: Path) -> None:
            if source.name == "orders-0":
                raise OSError(errno.ENOSPC, "full")
            super().rename(source, target)

    node = Node(tmp_path)
    node.disk = StubbornFiles()
    manager = node.start()
    for n in range(3):
        put(node.create(manager, "orders", n), b"v")
    wanted = [("orders", n) for n in range(3)]
    assert code_of(lambda: manager.delete(wanted)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.logs() == []
    names = {path.name for path in node.paths[0].iterdir() if path.is_dir()}
    assert {name for name in names if not name.endswith("-delete")} == {"orders-0"}
    manager.close(now_ms=NOW_MS)
    assert not (node.paths[0] / ".kafka_cleanshutdown").exists()  # nobody has closed orders-0


def test_a_directory_with_a_log_that_went_offline_alone_is_not_marked_clean(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path)
    manager = node.start()
    hurt, well = (node.create(manager, "orders", n) for n in range(2))
    for log in (hurt, well):
        put(log, b"v")
    hurt.take_offline("a swap of its segments stopped half way")
    manager.close(now_ms=NOW_MS)
    assert not (node.paths[0] / ".kafka_cleanshutdown").exists()


def test_a_directory_that_cannot_be_loaded_is_offline(tmp_path: Path) -> None:
    node = Node(tmp_path, "a", "b")
    manager = node.start()
    for n in range(2):
        put(node.create(manager, "orders", n), b"v")
    manager.close(now_ms=NOW_MS)
    node.disk.broken = node.paths[0] / "orders-0"
    manager = node.start()
    assert list(manager.offline) == [node.paths[0]]
    assert values_from(manager.get("orders", 1)) == [b"v"]
    manager.close(now_ms=NOW_MS)


def test_without_any_directory_there_is_no_broker(tmp_path: Path) -> None:
    node = Node(tmp_path)
    manager = node.start()
    put(node.create(manager, "orders"), b"v")
    manager.close(now_ms=NOW_MS)
    node.disk.broken = node.paths[0] / "orders-0"
    with pytest.raises(DirectoryError) as caught:
        node.start()
    assert str(caught.value).startswith(f"no log directory is left: {node.paths[0]}: [Errno 5] ")


def test_a_partition_in_two_directories_stops_the_start(tmp_path: Path) -> None:
    node = Node(tmp_path, "a", "b")
    manager = node.start()
    node.create(manager, "orders")
    manager.close(now_ms=NOW_MS)
    (node.paths[1] / "orders-0").mkdir()
    with pytest.raises(DirectoryError, match="orders-0 is in"):
        node.start()


def test_what_is_no_log_is_left_alone(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.start().close(now_ms=NOW_MS)
    for name in ("lost+found", "no_log", "orders-0.abc-future"):
        (node.paths[0] / name).mkdir()
    manager = node.start()
    assert manager.logs() == []
    manager.close(now_ms=NOW_MS)
    assert (node.paths[0] / "no_log").is_dir()


def test_several_logs_are_synced_at_once_when_all_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(tmp_path)
    manager = node.start()
    for number in range(2):
        put(node.create(manager, "orders", number), b"v")
    two = threading.Barrier(2, timeout=10.0)

    def fsync(file: OpenFile) -> None:
        if file.path.suffix == ".log":
            two.wait()
        Disk.fsync(node.disk, file)

    monkeypatch.setattr(node.disk, "fsync", fsync)
    manager.close(now_ms=NOW_MS)
    assert (node.paths[0] / ".kafka_cleanshutdown").exists()


def test_a_log_that_cannot_be_closed_does_not_keep_others_from_it(tmp_path: Path) -> None:
    node = Node(tmp_path)
    manager = node.start()
    logs = [node.create(manager, "orders", n) for n in range(3)]
    for log in logs:
        put(log, b"v")
    node.disk.broken, node.disk.error = logs[0].directory, errno.ENOSPC
    manager.close(now_ms=NOW_MS)
    assert [log.recovery_point for log in logs] == [0, 1, 1]
    assert not (node.paths[0] / ".kafka_cleanshutdown").exists()
    node.disk.broken = None
    manager = node.start()
    assert all(values_from(log) == [b"v"] for log in manager.logs())
    manager.close(now_ms=NOW_MS)
