"""After any requests, the live transactions are those that a restart reads from the log."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from odradek.coordinator.runtime.producer import ProducerIdAndEpoch
from odradek.coordinator.runtime.shards import CoordinatorShards
from odradek.coordinator.runtime.timers import Now
from odradek.coordinator.transactions.completion import COMPLETE_RECORD_MS, LONGEST_RETRY_MS
from odradek.coordinator.transactions.settings import TransactionSettings
from odradek.coordinator.transactions.states import PREPARED
from odradek.coordinator.transactions.transaction_coordinator import (
    InitCall,
    TransactionCoordinator,
)
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.storage.append import EndMarker
from tests.support.lengths import by_length
from tests.support.memory_log import MemoryLog

IDS = ("a", "b")
TIMEOUT_MS = 60_000
DAY_MS = 86_400_000
SETTINGS = TransactionSettings(
    max_timeout_ms=900_000,
    abort_interval_ms=10_000,
    expiration_ms=7 * DAY_MS,
    expiration_interval_ms=3_600_000,
    two_phase_commit=False,
)


class Loop:
    """An event loop that calls nothing: the machine calls the coordinator's deadlines."""

    def call_later(self, _delay_s: float, _callback: Callable[..., Any]) -> "Loop":
        return self

    def call_soon(self, callback: Callable[..., Any], *arguments: Any) -> None:
        callback(*arguments)

    def cancel(self) -> None: ...


class Markers:
    """Partitions that take markers, unless they are offline. `log` is that of all of them."""

    def __init__(self) -> None:
        self.log: object = None
        self.offline = False
        self.refused = 0
        self.written: list[tuple[EndMarker, tuple[str, int]]] = []

    def write(self, marker: EndMarker, where: tuple[str, int], _now_ms: int) -> object:
        if self.offline:
            self.refused += 1
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the partition is offline")
        self.written.append((marker, where))
        return self.log


class Machine(RuleBasedStateMachine):
    """Two transactional ids, whose producers send any requests in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.log = MemoryLog("__transaction_state")
        self.markers = Markers()
        self.now = Now(1_700_000_000_000, 0)
        self.next_producer_id = 0
        self.version = 2
        self.coordinator = self.started()
        self.shards: CoordinatorShards[Any] = self.coordinator.shards

    def started(self) -> TransactionCoordinator:
        coordinator = TransactionCoordinator(
            SETTINGS,
            loop=Loop(),  # type: ignore[arg-type] # as much of a loop as it needs
            clock=lambda: self.now,
            after_arrivals=lambda callback: callback(),
            markers=self.markers,  # type: ignore[arg-type] # a writer without logs
            new_producer_id=self.new_producer_id,
            transaction_version=lambda: self.version,
        )
        coordinator.open_topic([self.log], 1)  # type: ignore[list-item] # a log in memory
        return coordinator

    def new_producer_id(self, _now_ms: int) -> int:
        self.next_producer_id += 1
        return self.next_producer_id

    def table(self) -> dict[str, Any]:
        return self.coordinator.shards.at(0).state.by_id

    def attempt(self, request: Callable[[], object]) -> None:
        try:
            request()
        except ApiError as error:
            assert error.code is not ErrorCode.UNKNOWN_SERVER_ERROR  # noqa: PT017 # any other

    def producer(self, name: str, epoch_delta: int) -> ProducerIdAndEpoch:
        known = self.table().get(name)
        if known is None:
            return ProducerIdAndEpoch(99, 0)
        return ProducerIdAndEpoch(known.producer_id, known.producer_epoch + epoch_delta)

    @rule(name=st.sampled_from(IDS), delta=st.sampled_from((None, 0, -1, 1)))
    def start(self, name: str, delta: int | None) -> None:
        expected = None if delta is None else self.producer(name, delta)
        call = InitCall(name, TIMEOUT_MS, expected)

        def init() -> None:
            needs_id = self.coordinator.needs_producer_id(call)
            new_id = self.new_producer_id(0) if needs_id else None
            self.coordinator.init_producer_id(call, new_id)

        self.attempt(init)

    @rule(
        name=st.sampled_from(IDS),
        delta=st.sampled_from((0, 0, 0, 1, -1)),
        partitions=st.sets(st.tuples(st.sampled_from("xy"), st.integers(0, 2)), min_size=1),
        client_version=st.sampled_from((0, 2)),
    )
    def add(self, name: str, delta: int, partitions: set, client_version: int) -> None:
        producer = self.producer(name, delta)
        self.attempt(
            lambda: self.coordinator.add_partitions(
                name, producer, partitions, client_version=client_version
            )
        )

    @rule(
        name=st.sampled_from(IDS),
        delta=st.sampled_from((0, 0, 0, -1, 1)),
        commit=st.booleans(),
        client_version=st.sampled_from((0, 2)),
    )
    def end(self, name: str, delta: int, *, commit: bool, client_version: int) -> None:
        producer = self.producer(name, delta)
        self.attempt(
            lambda: self.coordinator.end(
                name, producer, commit=commit, client_version=client_version
            )
        )

    @rule(offline=st.booleans())
    def turn_partitions(self, *, offline: bool) -> None:
        self.markers.offline = offline

    @rule(version=st.sampled_from((0, 1, 2)))
    def finalize_version(self, version: int) -> None:
        self.version = version

    @rule(ms=st.sampled_from((1, 100, 10_000, TIMEOUT_MS + 10_000, 8 * DAY_MS)))
    def wait(self, ms: int) -> None:
        self.now = Now(self.now.wall_ms + ms, self.now.timer_ms + ms)
        self.coordinator.alarm.expire_due()

    @rule(name=st.sampled_from(IDS))
    def use_up_the_epochs(self, name: str) -> None:
        """Replace what the log says by a transaction of the last epoch."""
        known = self.table().get(name)
        if known is None or known.state in PREPARED:
            return
        shard = self.coordinator.shards.at(0)
        last = known.become(known.state, producer_epoch=32766) if known.state in (0, 1) else None
        if last is not None and self.log.fail_next is None:
            shard.journal.commit(shard.state.write(last, 2, None), self.now.wall_ms)

    @rule()
    def fail_the_next_append(self) -> None:
        self.log.fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")

    @rule()
    @precondition(lambda self: self.log.fail_next is None)
    def restart(self) -> None:
        self.coordinator.close()
        self.coordinator = self.started()

    @invariant()
    def the_live_state_is_that_of_the_log(self) -> None:
        failure, self.log.fail_next = self.log.fail_next, None
        replayed = CoordinatorShards(
            self.shards.topic,
            lambda _partition: type(self.coordinator.shards.at(0).state)(),
            self.shards._codec,
            compression=self.shards._compression,
            logger=self.shards._logger,
        )
        replayed.open_topic([self.log], 1)  # type: ignore[list-item] # a log in memory
        assert replayed.at(0).state.by_id == self.table()
        self.log.fail_next = failure

    @invariant()
    def a_prepared_transaction_is_completed_when_its_partitions_are_online(self) -> None:
        if self.markers.offline or self.log.fail_next is not None:
            return
        for ms in (LONGEST_RETRY_MS, COMPLETE_RECORD_MS):
            self.now = Now(self.now.wall_ms + ms, self.now.timer_ms + ms)
            self.coordinator.alarm.expire_due()
        assert not [each for each in self.table().values() if each.state in PREPARED]


Machine.TestCase.settings = settings(
    max_examples=by_length(20, 200), stateful_step_count=30, deadline=None
)
TestLiveTransactions = Machine.TestCase
