"""What the log says of transactions that are aborted because they have timed out."""

import logging

import pytest

from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.runtime.timers import Now
from odradek.coordinator.transactions import transaction_coordinator
from odradek.coordinator.transactions.states import TransactionState
from odradek.coordinator.transactions.transaction_coordinator import (
    InitCall,
    TransactionCoordinator,
)
from odradek.protocol.errors import ApiError, ErrorCode
from tests.coordinator.transactions.test_live_transactions_are_the_logs import (
    SETTINGS,
    Loop,
    Markers,
)
from tests.support.groups import ManualLoop
from tests.support.memory_log import MemoryLog

START_MS = 1_700_000_000_000
TIMEOUT_MS = 60_000


class Coordinator:
    """A coordinator with open transactions; time passes when it is told so."""

    def __init__(self, *names: str, loop: object = None, log: MemoryLog | None = None) -> None:
        self.now = Now(START_MS, 0)
        self.tick_ms = 0  # so much time passes with each look at the clock
        self.log = log or MemoryLog("__transaction_state")
        self.markers = Markers()
        self._coordinator = TransactionCoordinator(
            SETTINGS,
            loop=loop or Loop(),  # type: ignore[arg-type] # as much of a loop as it needs
            clock=self._clock,
            after_arrivals=lambda callback: callback(),
            markers=self.markers,  # type: ignore[arg-type] # a writer without logs
            new_producer_id=lambda _: 0,
            transaction_version=lambda: 2,
        )
        self._coordinator.open_topic([self.log], 1)  # type: ignore[list-item] # a log in memory
        for number, name in enumerate(names):
            call = InitCall(name, TIMEOUT_MS)
            producer = self._coordinator.init_producer_id(call, 40 + number)
            self._coordinator.add_partitions(name, producer, {("t", 0)}, client_version=2)
        self.wait(SETTINGS.abort_interval_ms)

    def _clock(self) -> Now:
        self.now = Now(self.now.wall_ms + self.tick_ms, self.now.timer_ms + self.tick_ms)
        return self.now

    def count(self, state: TransactionState) -> int:
        """The number of transactions in a state."""
        table = self._coordinator.shards.at(0).state
        return sum(each.state is state for each in table.all())

    @property
    def completed(self) -> int:
        """The number of completed transactions whose records are not written."""
        return len(self._coordinator.shards.at(0).state.completed)

    @property
    def id_count(self) -> int:
        return len(self._coordinator.shards.at(0).state.by_id)

    def commit(self, name: str, *partitions: tuple[str, int]) -> None:
        """Commit the open transaction of an id after adding partitions to it."""
        known = self._coordinator.describe(name)
        producer = ProducerIdAndEpoch(known.producer_id, known.producer_epoch)
        self._coordinator.add_partitions(name, producer, {*partitions}, client_version=2)
        self._coordinator.end(name, producer, commit=True, client_version=2)

    def lose_log(self) -> None:
        self._coordinator.partition_offline(0)

    def wait(self, ms: int) -> None:
        self.now = Now(self.now.wall_ms + ms, self.now.timer_ms + ms)
        self._coordinator.alarm.expire_due()


def test_a_transaction_that_timed_out_is_named_with_its_producer_and_age(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "odradek.transactions")
    coordinator = Coordinator("pay")
    coordinator.wait(TIMEOUT_MS - SETTINGS.abort_interval_ms)
    assert caplog.messages == []
    coordinator.wait(SETTINGS.abort_interval_ms)
    assert caplog.messages == [
        "aborted the transaction of pay (producer id 40, epoch 0) after 70000 ms: its timeout is"
        " 60000 ms"
    ]
    assert caplog.records[0].levelname == "INFO"


def test_of_many_transactions_that_time_out_at_once_few_are_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "odradek.transactions")
    Coordinator(*(f"id-{number}" for number in range(50))).wait(2 * TIMEOUT_MS)
    assert len(caplog.messages) == 11
    assert caplog.messages[-1] == "40 more transactions have timed out"


def test_a_transaction_that_cannot_be_aborted_is_named_as_well(
    caplog: pytest.LogCaptureFixture,
) -> None:
    coordinator = Coordinator("pay")
    coordinator.log.fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")
    coordinator.wait(2 * TIMEOUT_MS)
    assert caplog.messages == [
        "cannot abort the transaction of pay (producer id 40, epoch 0) after 130000 ms:"
        " NOT_COORDINATOR: the disk is gone"
    ]


def test_a_turn_of_the_loop_aborts_some_of_many_transactions() -> None:
    loop = ManualLoop()
    coordinator = Coordinator(*(f"id-{number}" for number in range(50)), loop=loop)
    coordinator.tick_ms = 1
    coordinator.wait(2 * TIMEOUT_MS)
    for left in (49, 48, 47):
        assert coordinator.count(TransactionState.ONGOING) == left
        loop.turn()


def test_a_turn_of_the_loop_looks_at_some_of_many_open_transactions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transaction_coordinator, "CHECKS_PER_TURN", 10)
    loop = ManualLoop()
    coordinator = Coordinator(*(f"id-{number}" for number in range(50)), loop=loop)
    loop.advance(0)
    coordinator.wait(2 * TIMEOUT_MS)
    for left in (40, 30, 20, 10, 0):
        assert coordinator.count(TransactionState.ONGOING) == left
        loop.turn()


def test_a_turn_of_the_loop_removes_some_of_many_transactional_ids(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transaction_coordinator, "CHECKS_PER_TURN", 10)
    loop = ManualLoop()
    coordinator = Coordinator(*(f"id-{number}" for number in range(50)), loop=loop)
    coordinator.wait(2 * TIMEOUT_MS)
    loop.advance(0)
    coordinator.wait(SETTINGS.expiration_ms + SETTINGS.expiration_interval_ms)
    for left in (40, 30, 20, 10, 0):
        assert coordinator.id_count == left
        loop.turn()
