"""After any requests, the live states are those that a restart reads from the log."""

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from odradek.coordinator.share_state.batches import DeliveryBatch
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.coordinator.share_state.table import ShareStateTable
from odradek.protocol.errors import ApiError, ErrorCode
from tests.support.lengths import by_length
from tests.support.share_states import MINUTE_MS, TOPIC_ID, ShareStates

OTHER_ID = b"another topic id"
KEYS = (
    SharePartitionKey("g", TOPIC_ID, 0),
    SharePartitionKey("g", TOPIC_ID, 1),
    SharePartitionKey("h", OTHER_ID, 0),
)
keys = st.sampled_from(KEYS)
epochs = st.integers(-1, 3)
batches = st.builds(
    lambda first, size, count, state: DeliveryBatch(first, first + size, count, state),
    st.integers(0, 20),
    st.integers(-1, 6),
    st.integers(1, 3),
    st.sampled_from([0, 2, 4]),
)


def journaled(table: ShareStateTable) -> dict[str, Any]:
    """All that a table reads from its log."""
    settings = ("_partition_count", "_updates_per_snapshot")
    return {name: value for name, value in vars(table).items() if name not in settings}


class Machine(RuleBasedStateMachine):
    """Leaders and group coordinators, with older and newer epochs. A topic may be deleted."""

    @initialize(updates_per_snapshot=st.integers(0, 3))
    def start(self, updates_per_snapshot: int) -> None:
        self.states = ShareStates(
            topics={TOPIC_ID: 2, OTHER_ID: 1}, updates_per_snapshot=updates_per_snapshot
        )
        for key in KEYS:
            self.states.initialize(key, start=0)

    def attempt(self, request: Callable[[], object]) -> None:
        try:
            request()
        except ApiError as error:
            assert error.code is not ErrorCode.UNKNOWN_SERVER_ERROR  # noqa: PT017 # any other
        self.states.logs[0].fail_next = None

    @rule(key=keys, state_epoch=epochs, start=st.integers(-1, 10))
    def begin(self, key: SharePartitionKey, state_epoch: int, start: int) -> None:
        self.attempt(lambda: self.states.initialize(key, state_epoch, start))

    @rule(key=keys, leader_epoch=epochs)
    def read(self, key: SharePartitionKey, leader_epoch: int) -> None:
        self.attempt(lambda: self.states.read(key, leader_epoch))

    @rule(
        key=keys,
        some=st.lists(batches, max_size=3),
        state_epoch=epochs,
        leader_epoch=epochs,
        start=st.just(-1) | st.integers(0, 20),
    )
    def write(self, key: SharePartitionKey, some: list[DeliveryBatch], **fields: int) -> None:
        self.attempt(lambda: self.states.write(*some, key=key, **fields))

    @rule(key=keys)
    def delete(self, key: SharePartitionKey) -> None:
        self.attempt(lambda: self.states.delete(key))

    @rule()
    def the_other_topic_is_deleted(self) -> None:
        # If this append failed, the states would stay until the next start.
        self.states.logs[0].fail_next = None
        self.states.topics.pop(OTHER_ID, None)
        self.states.coordinator.on_topics_deleted([OTHER_ID])

    @rule()
    def the_next_append_fails(self) -> None:
        self.states.logs[0].fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "no space")

    @rule(minutes=st.integers(1, 8))
    def time_passes(self, minutes: int) -> None:
        self.states.logs[0].fail_next = None
        self.states.loop.advance(minutes * MINUTE_MS)

    @invariant()
    def a_restart_finds_the_same(self) -> None:
        live, log = self.states.table, self.states.logs[0]
        failure, log.fail_next = log.fail_next, None
        restarted = self.states.restarted().table
        log.fail_next = failure
        if log.log_start_offset == 0:
            assert journaled(restarted) == journaled(live)
        # Of pruned records only what the snapshots after them say is left, as in Kafka: a count of
        # updates or a highest epoch may be lower.
        assert restarted.states == live.states
        assert restarted.redundant_before >= log.log_start_offset or not live.states


Machine.TestCase.settings = settings(
    max_examples=by_length(15, 2_000), stateful_step_count=by_length(25, 60), deadline=None
)
TestLiveStates = Machine.TestCase
