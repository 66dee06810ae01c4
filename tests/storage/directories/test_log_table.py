"""The table of all logs: which are served, which wait, and what a lost directory takes along."""

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.data_directory import DataDirectory
from odradek.storage.directories.found_log import FoundLog
from odradek.storage.directories.log_table import LogTable
from odradek.storage.topic_names import CLUSTER_METADATA_TOPIC
from odradek.storage.topic_partition import TopicPartition

FULL = OSError(errno.ENOSPC, "no space left")
BROKEN = OSError(errno.EIO, "broken")
A, B, C, D = (TopicPartition("t", number) for number in range(4))
METADATA = TopicPartition(CLUSTER_METADATA_TOPIC, 0)


class Directory:
    """As much of a log directory as the table knows."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)


ONE: DataDirectory = Directory("/one")
TWO: DataDirectory = Directory("/two")


class Log:
    """As much of an open log as the table knows."""

    def __init__(self, key: TopicPartition) -> None:
        self.key = key
        self.topic, self.partition = key
        self.offline_reason = ""

    def take_offline(self, reason: str) -> None:
        self.offline_reason = reason


def found(
    key: TopicPartition, directory: DataDirectory = ONE, unflushed_bytes: int = 0
) -> FoundLog:
    return FoundLog(
        directory=directory,
        topic=key.topic,
        partition=key.partition,
        unflushed_bytes=unflushed_bytes,
    )


def refusal(table: LogTable, key: TopicPartition) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        table.get(*key)
    return caught.value.code


@pytest.fixture
def table() -> LogTable:
    return LogTable()


def test_an_open_log_is_served_until_it_is_taken(table: LogTable) -> None:
    first, second = Log(A), Log(B)
    table.put(first, ONE)
    table.put(second, TWO)
    assert table.get(*A) is first
    assert table.by_topic == {"t": {0: first, 1: second}}
    assert (A in table, C in table) == (True, False)
    assert table.take(A) == (first, ONE)
    assert table.take(A) is None
    assert table.by_topic == {"t": {1: second}}
    assert table.take(B) == (second, TWO)
    assert table.by_topic == {}
    assert refusal(table, A) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_requests_cannot_name_the_metadata_log(table: LogTable) -> None:
    log = Log(METADATA)
    table.put(log, ONE)
    table.put(Log(A), ONE)
    assert refusal(table, METADATA) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert log in table.open_in(ONE)
    assert list(table.partitions_in(ONE)) == [A]
    assert (table.count_in[ONE], table.count_in[TWO]) == (2, 0)


def test_a_log_is_counted_where_it_is(table: LogTable) -> None:
    log = Log(A)
    table.put(log, ONE)
    table.put(log, TWO)  # after a move
    assert (table.count_in[ONE], table.count_in[TWO]) == (0, 1)
    table.take(A)
    assert table.count_in[TWO] == 0


def test_why_a_log_is_not_served(table: LogTable) -> None:
    table.not_open[A] = found(A)
    table.give_up(found(C), "damaged")
    assert refusal(table, A) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refusal(table, C) is ErrorCode.KAFKA_STORAGE_ERROR
    assert all(key in table for key in (A, C))


def test_the_smallest_log_is_recovered_first_and_an_unreadable_one_is_not(table: LogTable) -> None:
    table.not_open[A] = found(A, unflushed_bytes=9)
    table.not_open[B] = found(B, unflushed_bytes=3)
    table.give_up(found(C), "damaged")
    assert [log.key for log in table.waiting()] == [B, A]
    assert table.is_waiting(found(B, unflushed_bytes=3))
    assert not table.is_waiting(found(B, unflushed_bytes=4)), "it was found again meanwhile"
    assert not table.is_waiting(found(C))
    table.put(Log(B), ONE)
    assert [log.key for log in table.waiting()] == [A]


def give_up(table: LogTable, key: TopicPartition, error: OSError, at: DataDirectory = ONE) -> None:
    table.give_up(found(key, at), str(error))
    table.postpone_after(key, at, error)


def test_only_what_may_succeed_later_is_postponed(table: LogTable) -> None:
    give_up(table, A, FULL)
    give_up(table, B, BROKEN)
    assert table.take_postponed(ONE, 10) == ([found(A)], [])
    assert table.take_postponed(ONE, 10) == ([], [])
    assert [log.key for log in table.waiting()] == [A]
    assert refusal(table, B) is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_log_that_could_not_be_made_is_to_be_created(table: LogTable) -> None:
    table.unreadable[A] = "no space left"
    table.postpone_after(A, ONE, FULL)
    assert table.take_postponed(TWO, 10) == ([], [])  # which has room
    assert table.take_postponed(ONE, 10) == ([], [A])
    assert refusal(table, A) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_postponed_logs_are_taken_by_directory_and_a_few_at_a_time(table: LogTable) -> None:
    give_up(table, A, FULL)
    give_up(table, B, FULL)
    give_up(table, C, FULL, at=TWO)
    taken = [table.take_postponed(ONE, 1) for _ in range(3)]
    assert sorted(log.key for found_logs, _ in taken for log in found_logs) == [A, B]
    assert taken[2] == ([], [])
    assert table.take_postponed(TWO, 1) == ([found(C, TWO)], [])


def test_a_log_that_was_deleted_meanwhile_is_not_tried_again(table: LogTable) -> None:
    give_up(table, A, FULL)
    table.forget_reasons(A)
    assert table.take_postponed(ONE, 10) == ([], [])
    give_up(table, B, FULL)
    del table.unreadable[B]
    assert table.take_postponed(ONE, 10) == ([], [])


def test_a_lost_directory_takes_its_logs_along_and_no_others(table: LogTable) -> None:
    here, there = Log(A), Log(B)
    table.put(here, ONE)
    table.put(there, TWO)
    give_up(table, C, FULL)
    table.postpone_after(D, ONE, FULL)  # could not be made
    moves: dict[TopicPartition, Any] = {
        A: SimpleNamespace(home=TWO, is_cancelled=False),
        B: SimpleNamespace(home=ONE, is_cancelled=False),
        C: SimpleNamespace(home=TWO, is_cancelled=False),
    }
    table.futures.update(moves)
    assert table.futures_in(ONE) == [moves[B]]
    assert table.lose(ONE, "gone") == [found(C)]
    assert (here.offline_reason, there.offline_reason) == ("gone", "")
    assert table.unreadable == {C: "gone", D: "gone"}
    assert not table.postponed
    assert table.take_postponed(ONE, 10) == ([], [])
    assert [move.is_cancelled for move in moves.values()] == [True, True, False]
    assert table.futures == {C: moves[C]}
