"""Partitions that are loaded while the broker serves: a slice in each turn of the loop."""

import errno
from collections.abc import Iterator
from itertools import count

import pytest

from odradek.coordinator.runtime.sliced_replay import BYTES_PER_READ, RECORDS_PER_SLICE
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.record import Record
from odradek.protocol.record_batch import build_batch
from odradek.storage.log import AppendOrigin
from tests.support.groups import Groups
from tests.support.memory_log import MemoryLog

COMMITS = 20 * RECORDS_PER_SLICE
LARGE, SMALL = "b", "a"  # by the partitions that their names hash to


@pytest.fixture
def groups() -> Groups:
    """Two partitions: 0 with many commits in it, not served yet, and 1."""
    groups = Groups(partitions=2)
    for number in range(COMMITS):
        groups.commit(number, group_id=LARGE, partition=number)
    assert sum(map(len, groups.logs[0].stored)) > 3 * BYTES_PER_READ
    after = groups.restarted()
    after.coordinator.partition_offline(0)
    return after


def find(groups: Groups, partition: int = 0) -> None:
    groups.coordinator.partition_online(groups.logs[partition])  # type: ignore[arg-type] # a MemoryLog serves a journal


def error_of(groups: Groups) -> ErrorCode:
    """What a request of the large group is answered."""
    try:
        groups.coordinator.shards.of(LARGE)
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


def test_a_turn_of_the_loop_replays_a_slice_and_others_are_served_between(groups: Groups) -> None:
    assert error_of(groups) is ErrorCode.NOT_COORDINATOR
    find(groups)
    turns = 0
    while error_of(groups) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        assert groups.heartbeat("m", 1, group_id=LARGE) is ErrorCode.NONE
        assert groups.commit(turns, group_id=SMALL) is ErrorCode.NONE
        groups.loop.turn()
        turns += 1
    assert turns >= COMMITS / RECORDS_PER_SLICE
    found = {groups.committed(partition=number, group_id=LARGE) for number in (0, COMMITS - 1)}
    assert found == {0, COMMITS - 1}
    assert groups.commit(7, group_id=LARGE) is ErrorCode.NONE
    assert groups.restarted().committed(group_id=LARGE) == 7


def test_partitions_are_loaded_one_after_another(groups: Groups) -> None:
    groups.coordinator.partition_offline(1)
    find(groups, 0)
    find(groups, 1)
    while error_of(groups) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        with pytest.raises(ApiError, match="not served"):
            groups.coordinator.shards.of(SMALL)
        groups.loop.turn()
    groups.advance(0)
    assert groups.coordinator.shards.of(SMALL)


def test_a_partition_that_is_lost_while_it_loads_is_not_served(groups: Groups) -> None:
    find(groups)
    groups.loop.turn()
    groups.coordinator.partition_offline(0)
    groups.advance(0)
    assert error_of(groups) is ErrorCode.NOT_COORDINATOR
    find(groups)
    groups.coordinator.partition_offline(0)
    find(groups)
    groups.advance(0)
    assert groups.committed(group_id=LARGE) == 0


def test_a_topic_that_is_deleted_while_it_loads_does_not_come_back(groups: Groups) -> None:
    find(groups)
    groups.loop.turn()
    groups.coordinator.close()
    groups.logs = [MemoryLog("__consumer_offsets", partition) for partition in range(2)]
    groups.open()
    groups.advance(0)
    assert groups.committed(group_id=LARGE) is None
    assert groups.commit(1, group_id=LARGE) is ErrorCode.NONE


def test_a_partition_whose_file_cannot_be_read_is_not_served(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(offset: int) -> None:
        raise OSError(5, f"no bytes at {offset}")

    monkeypatch.setattr(groups.logs[0], "batches", fail)
    find(groups)
    groups.advance(0)
    assert error_of(groups) is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize(
    ("code", "again"), [(errno.EMFILE, ErrorCode.NONE), (errno.EIO, ErrorCode.NOT_COORDINATOR)]
)
def test_a_partition_is_loaded_again_if_its_file_could_not_be_opened_for_now(
    groups: Groups, monkeypatch: pytest.MonkeyPatch, code: int, again: ErrorCode
) -> None:
    def fail(offset: int) -> None:
        raise OSError(code, f"no bytes at {offset}")

    shards = groups.coordinator.shards
    with monkeypatch.context() as failing:
        failing.setattr(groups.logs[0], "batches", fail)
        find(groups)
        groups.advance(0)
    assert error_of(groups) is ErrorCode.NOT_COORDINATOR
    for log in shards.take_postponed():
        groups.coordinator.partition_online(log)
    groups.advance(0)
    assert error_of(groups) is again
    assert shards.take_postponed() == []


def test_a_partition_is_not_served_if_only_its_last_read_fails(
    groups: Groups, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = groups.logs[0]
    read, ends = log.batches, count()

    def fail(offset: int) -> Iterator[memoryview]:
        if offset == log.log_end_offset and next(ends):
            raise OSError(5, f"no bytes at {offset}")
        return read(offset)

    monkeypatch.setattr(log, "batches", fail)
    find(groups)
    groups.advance(0)
    assert error_of(groups) is ErrorCode.NOT_COORDINATOR


def test_a_partition_that_cannot_be_read_to_its_end_is_not_served(
    groups: Groups, caplog: pytest.LogCaptureFixture
) -> None:
    broken = build_batch([Record(b"\x00\x02\x00\x09torn", None, 0)])
    groups.logs[0].append(bytes(broken), now_ms=0, origin=AppendOrigin.COORDINATOR)
    find(groups)
    groups.advance(0)
    assert error_of(groups) is ErrorCode.NOT_COORDINATOR
    assert "out of service" in caplog.text
    assert groups.commit(1, group_id=SMALL) is ErrorCode.NONE
