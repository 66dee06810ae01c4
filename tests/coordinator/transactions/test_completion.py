"""Prepared transactions whose markers or Complete records cannot be written at once."""

import logging

import pytest

from odradek.coordinator.transactions import transaction_coordinator
from odradek.coordinator.transactions.completion import (
    COMPLETE_RECORD_MS,
    LONGEST_RETRY_MS,
    MAX_CHECKED,
    MAX_COMPLETED,
    MIN_MARKERS,
    RETRY_MS,
    SYNC_RETRY_MS,
)
from odradek.coordinator.transactions.states import TransactionState
from odradek.protocol.errors import ApiError, ErrorCode
from tests.coordinator.transactions.test_timeout_lines import Coordinator
from tests.support.groups import ManualLoop

PREPARED, COMPLETE = TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT
NAMES = [f"id-{number}" for number in range(MAX_COMPLETED + 10)]


def test_markers_that_are_refused_are_tried_again_ever_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "odradek.transactions")
    coordinator = Coordinator("pay")
    coordinator.markers.offline = True
    coordinator.commit("pay", ("t", 1), ("u", 0))
    tries_after_ms = []
    for after_ms in range(0, 20_000, RETRY_MS):
        if coordinator.markers.refused == 3 * (len(tries_after_ms) + 1):
            tries_after_ms.append(after_ms)
        coordinator.wait(RETRY_MS)
    assert tries_after_ms == [0, 100, 300, 700, 1500, 3100, 6300, 11_300, 16_300]
    (message,) = caplog.messages
    assert message.startswith("no marker of pay yet in 3 partitions, the first is ")
    assert message.endswith(": KAFKA_STORAGE_ERROR: the partition is offline")
    coordinator.markers.offline = False
    coordinator.wait(LONGEST_RETRY_MS)
    written = [where for _, where in coordinator.markers.written]
    assert sorted(written) == [("t", 0), ("t", 1), ("u", 0)]
    coordinator.wait(COMPLETE_RECORD_MS)
    assert coordinator.count(COMPLETE) == 1


class SyncedLog:
    """A log of all partitions; what it has is synced when it is told so."""

    name = "t-0"
    log_end_offset = 1

    def __init__(self, *, is_synced: bool) -> None:
        self.is_synced = is_synced
        self.is_online = True
        self.looks = 0

    @property
    def high_watermark(self) -> int:
        self.looks += 1
        return self.log_end_offset if self.is_synced else 0


MANY = [("t", number) for number in range(MAX_CHECKED + 100)]


def test_a_look_at_many_markers_that_are_not_synced_ends_at_the_first_one() -> None:
    coordinator = Coordinator("pay")
    log = coordinator.markers.log = SyncedLog(is_synced=False)
    coordinator.commit("pay", *MANY)
    log.looks = 0
    coordinator.wait(SYNC_RETRY_MS)
    assert log.looks == 1
    log.is_synced = True
    coordinator.wait(SYNC_RETRY_MS)
    assert log.looks <= 1 + MAX_CHECKED
    assert coordinator.count(COMPLETE) == 0
    coordinator.wait(SYNC_RETRY_MS)
    assert coordinator.count(COMPLETE) == 1
    assert len(coordinator.markers.written) == len(MANY)


def test_markers_that_are_lost_before_they_are_synced_are_written_again() -> None:
    coordinator = Coordinator("pay")
    log = coordinator.markers.log = SyncedLog(is_synced=False)
    coordinator.commit("pay", ("t", 1), ("u", 0))
    log.is_online = False
    coordinator.wait(SYNC_RETRY_MS)
    log.is_online = log.is_synced = True
    coordinator.wait(RETRY_MS)
    assert coordinator.count(COMPLETE) == 1
    assert len(coordinator.markers.written) == 2 * 3


def test_markers_that_are_synced_at_once_are_not_looked_at_again() -> None:
    coordinator = Coordinator("pay")
    log = coordinator.markers.log = SyncedLog(is_synced=True)
    coordinator.tick_ms = 1  # a turn writes the least number of markers
    coordinator.commit("pay", *MANY[: 2 * MIN_MARKERS - 1])
    assert len(coordinator.markers.written) == MIN_MARKERS
    log.is_online = False
    coordinator.wait(1)
    assert coordinator.count(COMPLETE) == 1
    assert len(coordinator.markers.written) == 2 * MIN_MARKERS - 1


def waiting_for_markers() -> Coordinator:
    """A coordinator with more prepared transactions than Complete records may wait."""
    coordinator = Coordinator(*NAMES)
    coordinator.markers.offline = True
    for name in NAMES:
        coordinator.commit(name)
    coordinator.markers.offline = False
    return coordinator


def test_many_transactions_that_are_completed_at_once_do_not_share_a_batch() -> None:
    coordinator = waiting_for_markers()
    coordinator.wait(RETRY_MS)
    assert coordinator.count(COMPLETE) == len(NAMES)
    assert coordinator.completed == len(NAMES) - MAX_COMPLETED


def test_transactions_wait_while_the_records_of_many_others_cannot_be_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    coordinator = waiting_for_markers()
    coordinator.log.fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")
    coordinator.wait(RETRY_MS)
    assert (coordinator.count(COMPLETE), coordinator.count(PREPARED)) == (MAX_COMPLETED, 10)
    assert caplog.messages == [
        f"cannot complete {MAX_COMPLETED} transactions yet, among them"
        f" {', '.join(NAMES[:10])}: NOT_COORDINATOR: the disk is gone"
    ]
    coordinator.wait(COMPLETE_RECORD_MS)
    coordinator.wait(RETRY_MS)
    assert coordinator.count(COMPLETE) == len(NAMES)


def test_a_turn_of_the_loop_goes_on_with_some_of_the_transactions_of_a_log_that_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transaction_coordinator, "CHECKS_PER_TURN", 10)
    before, loop = waiting_for_markers(), ManualLoop()
    coordinator = Coordinator(log=before.log, loop=loop)
    for completed in range(10, len(NAMES) + 1, 10):
        assert coordinator.count(COMPLETE) == completed
        loop.turn()
        coordinator.wait(1)


def test_no_markers_are_written_for_a_log_that_is_lost_after_it_was_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transaction_coordinator, "CHECKS_PER_TURN", 10)
    before, loop = waiting_for_markers(), ManualLoop()
    coordinator = Coordinator(log=before.log, loop=loop)
    coordinator.lose_log()
    written = len(coordinator.markers.written)
    assert written < len(NAMES)
    loop.turn()
    coordinator.wait(LONGEST_RETRY_MS)
    assert len(coordinator.markers.written) == written
