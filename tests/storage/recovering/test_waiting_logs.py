"""Logs that wait for their recovery: which ones, what is answered meanwhile, what they become."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.batch_header import CorruptRecordError
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.directories import found_log
from odradek.storage.directories.found_log import FoundLog
from odradek.storage.files import Files
from odradek.storage.log import PartitionLog
from odradek.storage.log_manager import LogManager
from odradek.storage.recovering.task import recover
from tests.storage.recovering.test_recovery import answers
from tests.storage.test_log_manager import SIZE, Node, code_of
from tests.support.crashing_files import CrashedError, CrashingFiles
from tests.support.log_box import NOW_MS, put, records_from, values_from
from tests.support.timer import Timer


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Killed with four logs of one to four batches; `orders-3` begins at 1."""
    node = Node(tmp_path)
    with node.killed() as manager:
        for partition in range(4):
            log = node.create(manager, "orders", partition)
            for n in range(partition + 1):
                put(log, b"%d" % n, producer=(7, 0, n), timestamps=[NOW_MS + n])
        manager.get("orders", 3).increment_log_start_offset(1)
        manager.write_log_starts()
        manager.write_high_watermarks()
    return node


@pytest.fixture(autouse=True)
def little_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_log, "READ_AT_ONCE_BYTES", 3 * SIZE)


def start(node: Node) -> LogManager:
    manager = LogManager.open(
        node.config, files=node.disk, timer_ms=Timer(), report=node.reports.append
    )
    manager.load_logs(lambda _: node.topic_config, now_ms=NOW_MS, may_wait=lambda log: True)
    return manager


def recover_and_open(node: Node, manager: LogManager, log: FoundLog) -> PartitionLog:
    """As a recovering process and the broker do it."""
    recent = recover(manager.task_of(log, node.topic_config, NOW_MS), Files(), node.reports.append)
    opened = manager.open_found(log, node.topic_config, now_ms=NOW_MS, recovered=recent)
    assert opened is not None
    return opened


def checkpoint(node: Node, name: str) -> list[str]:
    return (node.paths[0] / name).read_text().splitlines()[2:]


def test_small_logs_are_recovered_at_once_and_large_ones_wait(node: Node) -> None:
    manager = start(node)
    assert sorted(log.partition for log in manager.logs()) == [0, 1]
    assert [log.partition for log in manager.waiting()] == [2, 3]
    manager.close(now_ms=NOW_MS)


def test_after_a_clean_stop_no_log_waits(node: Node) -> None:
    node.start().close(now_ms=NOW_MS)
    manager = start(node)
    assert len(manager.logs()) == 4
    assert manager.waiting() == []
    manager.close(now_ms=NOW_MS)


def test_a_log_that_must_not_wait_is_recovered_however_large(node: Node) -> None:
    manager = LogManager.open(node.config, files=node.disk, timer_ms=Timer())
    manager.load_logs(
        lambda _: node.topic_config, now_ms=NOW_MS, may_wait=lambda log: log.partition != 3
    )
    assert [log.partition for log in manager.waiting()] == [2]
    manager.close(now_ms=NOW_MS)


def test_who_asks_for_a_waiting_log_is_told_to_look_again(node: Node) -> None:
    manager = start(node)
    assert code_of(lambda: manager.get("orders", 3)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(lambda: node.create(manager, "orders", 3)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert manager.find("orders", 3) is None
    manager.close(now_ms=NOW_MS)


def test_a_log_waits_until_it_is_opened_or_given_up(node: Node) -> None:
    manager = start(node)
    recovered, damaged = manager.waiting()
    assert manager.is_waiting(recovered)
    assert manager.is_waiting(damaged)
    recover_and_open(node, manager, recovered)
    assert not manager.is_waiting(recovered)
    manager.give_up(damaged, CorruptRecordError("damaged"))
    assert not manager.is_waiting(damaged)
    assert manager.waiting() == []
    manager.close(now_ms=NOW_MS)


def test_a_log_is_the_same_whoever_recovers_it(node: Node, tmp_path: Path) -> None:
    manager = start(node)
    opened = [recover_and_open(node, manager, log) for log in manager.waiting()]
    found = {log.partition: answers(log) for log in opened}
    points = {log.partition: log.recovery_point for log in opened}
    assert manager.not_open() == []
    for directory in manager.directories:
        directory.unlock()
    again = node.start()
    assert found == {partition: answers(again.get("orders", partition)) for partition in (2, 3)}
    # What was read is not synced: the next start reads it again.
    assert points == {2: 0, 3: 0}
    again.close(now_ms=NOW_MS)


def test_a_recovered_log_goes_on_with_its_producer(node: Node) -> None:
    manager = start(node)
    log = next(log for log in manager.waiting() if log.partition == 3)
    opened = recover_and_open(node, manager, log)
    assert len(opened.producers.producers[7].batches) == 4
    assert put(opened, b"1", producer=(7, 0, 1), timestamps=[NOW_MS + 1]) == 1
    assert put(opened, b"4", producer=(7, 0, 4)) == 4
    assert values_from(opened) == [b"1", b"2", b"3", b"4"]
    manager.close(now_ms=NOW_MS)


def test_checkpoints_keep_what_they_said_of_waiting_logs(node: Node) -> None:
    manager = start(node)
    manager.write_log_starts()
    manager.write_high_watermarks()
    manager.write_recovery_points()
    assert checkpoint(node, "log-start-offset-checkpoint") == ["orders 3 1"]
    assert sorted(checkpoint(node, "replication-offset-checkpoint")) == [
        f"orders {n} {n + 1}" for n in range(4)
    ]
    manager.close(now_ms=NOW_MS)
    assert checkpoint(node, "log-start-offset-checkpoint") == ["orders 3 1"]


def test_a_stop_with_logs_that_wait_is_not_a_clean_one(node: Node) -> None:
    start(node).close(now_ms=NOW_MS)
    assert not (node.paths[0] / ".kafka_cleanshutdown").exists()
    manager = start(node)
    assert [log.partition for log in manager.waiting()][-1] == 3
    for log in manager.waiting():
        recover_and_open(node, manager, log)
    manager.close(now_ms=NOW_MS)
    assert (node.paths[0] / ".kafka_cleanshutdown").exists()


def test_a_waiting_log_can_be_deleted_and_made_anew(node: Node) -> None:
    manager = start(node)
    abandoned: list[FoundLog] = []
    manager.on_abandoned = abandoned.append
    manager.delete([("orders", 3)])
    assert [log.key for log in abandoned] == [("orders", 3)]
    assert not abandoned[0].path.exists()
    log = node.create(manager, "orders", 3)
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    assert "orders 3 1" not in checkpoint(node, "log-start-offset-checkpoint")
    manager.close(now_ms=NOW_MS)


def test_a_stray_that_waits_is_put_aside_unread(node: Node) -> None:
    manager = start(node)
    manager.move_aside([("orders", 3)])
    [stray] = manager.strays
    assert stray.name.startswith("orders-3.")
    assert (stray / f"{0:020d}.log").exists()
    manager.close(now_ms=NOW_MS)


def test_waiting_logs_go_offline_with_their_directory(tmp_path: Path) -> None:
    node = Node(tmp_path, "one", "two")
    with node.killed() as manager:
        for partition in range(8):
            put(node.create(manager, "orders", partition), b"v")
    manager = start(node)
    abandoned: list[FoundLog] = []
    manager.on_abandoned = abandoned.append
    [one, two] = manager.directories
    manager.take_offline(one, "it fell off the table")
    assert abandoned
    assert {log.directory for log in abandoned} == {one}
    assert {log.directory for log in manager.waiting()} == {two}
    name = abandoned[0].key
    assert code_of(lambda: manager.get(*name)) is ErrorCode.KAFKA_STORAGE_ERROR
    manager.close(now_ms=NOW_MS)


def test_a_log_that_cannot_be_recovered_is_refused_and_the_others_go_on(node: Node) -> None:
    manager = start(node)
    log = manager.waiting()[-1]
    manager.give_up(log, OSError(28, "No space left on device"))
    with pytest.raises(ApiError, match="No space left"):
        manager.get("orders", 3)
    assert [each.partition for each in manager.waiting()] == [2]
    assert manager.directories, "a full disk takes no directory offline"
    manager.write_log_starts()
    assert checkpoint(node, "log-start-offset-checkpoint") == ["orders 3 1"]
    manager.close(now_ms=NOW_MS)
    assert not (node.paths[0] / ".kafka_cleanshutdown").exists()


def test_an_unreadable_disk_takes_its_directory_offline_while_logs_are_loaded(
    tmp_path: Path,
) -> None:
    node = Node(tmp_path, "one", "two")
    with node.killed() as manager:
        for partition in range(4):
            put(node.create(manager, "orders", partition), b"v")
    node.disk.broken = tmp_path / "one" / "orders-0"
    manager = node.start()
    assert [one.path.name for one in manager.directories] == ["two"]
    assert len(manager.logs()) == 2
    manager.close(now_ms=NOW_MS)


def test_a_disk_that_is_full_while_logs_are_recovered_costs_only_those(tmp_path: Path) -> None:
    node = Node(tmp_path)
    with node.killed() as manager:
        for partition in range(3):
            put(node.create(manager, "orders", partition), b"v")
    node.disk.broken, node.disk.error = tmp_path / "data" / "orders-1", errno.ENOSPC
    manager = node.start()
    assert manager.directories
    assert sorted(log.partition for log in manager.logs()) == [0, 2]
    assert code_of(lambda: manager.get("orders", 1)) is ErrorCode.KAFKA_STORAGE_ERROR
    manager.close(now_ms=NOW_MS)
    node.disk.broken = None
    manager = node.start()
    assert values_from(manager.get("orders", 1)) == [b"v"]
    manager.close(now_ms=NOW_MS)


def deaths(node: Node, manager: LogManager, log: FoundLog) -> Iterator[int]:
    """Recover it again and again; die before the first change, then before the second, ..."""
    task = manager.task_of(log, node.topic_config, NOW_MS)
    for limit in range(1000):
        try:
            recover(task, CrashingFiles(limit), node.reports.append)
        except CrashedError:
            yield limit
        else:
            return


def test_a_recovery_may_be_killed_before_any_of_its_changes(node: Node) -> None:
    path = node.paths[0] / "orders-3" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes() + b"torn")
    manager = start(node)
    log = manager.waiting()[-1]
    count = sum(1 for _ in deaths(node, manager, log))
    assert count > 10
    opened = recover_and_open(node, manager, log)
    assert [record.value for record in records_from(opened)] == [b"1", b"2", b"3"]
    assert opened.producers.producers[7].last_sequence == 3
    manager.close(now_ms=NOW_MS)


def test_a_partition_in_two_directories_is_refused_before_any_is_recovered(tmp_path: Path) -> None:
    node = Node(tmp_path, "one", "two")
    with node.killed() as manager:
        put(node.create(manager, "orders"), b"v")
    here, there = (tmp_path / name / "orders-0" for name in ("one", "two"))
    source, target = (here, there) if here.exists() else (there, here)
    target.mkdir()
    (target / f"{0:020d}.log").write_bytes((source / f"{0:020d}.log").read_bytes())
    manager = LogManager.open(node.config, files=node.disk, timer_ms=Timer())
    with pytest.raises(Exception, match=r"orders-0 is in .* and in .*: remove one"):
        manager.load_logs(lambda _: node.topic_config, now_ms=NOW_MS)
    for directory in manager.directories:
        directory.unlock()
