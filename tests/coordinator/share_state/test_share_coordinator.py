"""The share coordinator: states are fenced by epochs, stored, renewed, pruned and deleted."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from odradek.coordinator.share_state import share_coordinator
from odradek.coordinator.share_state.batches import DeliveryBatch
from odradek.coordinator.share_state.share_partition_key import SharePartitionKey
from odradek.coordinator.share_state.state import ShareState
from odradek.protocol.errors import ApiError, ErrorCode
from odradek.protocol.records.share_group_state import ShareSnapshotKey, ShareUpdateKey
from tests.support.memory_log import MemoryLog
from tests.support.share_states import MINUTE_MS, TOPIC_ID, ShareStates

OTHER = SharePartitionKey("other", TOPIC_ID, 0)
DONE = DeliveryBatch(0, 9, 1, 2)


@pytest.fixture
def states() -> ShareStates:
    return ShareStates()


def refusal(request: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ApiError) as refused:
        request()
    return refused.value.code


def kinds(states: ShareStates) -> list[str]:
    names = {ShareSnapshotKey: "snapshot", ShareUpdateKey: "update"}
    return [
        "tombstone" if record.value is None else names[type(record.key)]
        for record in states.records
    ]


# -- requests --------------------------------------------------------------------------------------


def test_a_state_must_be_initialized_before_it_is_read_or_written(states: ShareStates) -> None:
    assert refusal(states.read) is ErrorCode.INVALID_REQUEST
    assert refusal(states.write) is ErrorCode.INVALID_REQUEST
    assert states.summary() == ShareState()
    states.delete()
    assert not states.records


def test_what_is_written_is_read(states: ShareStates) -> None:
    states.initialize(start=0)
    states.write(DONE, start=0, delivery_complete_count=10)
    found = states.read()
    assert (found.start_offset, found.batches, found.delivery_complete_count) == (0, (DONE,), 10)
    assert found == states.summary()


def test_an_initialized_state_has_done_nothing_unless_its_start_is_unknown(
    states: ShareStates,
) -> None:
    states.initialize()
    assert states.summary().delivery_complete_count == -1
    states.initialize(start=7)
    assert states.summary().delivery_complete_count == 0


def test_initializing_again_begins_with_a_higher_snapshot_epoch(states: ShareStates) -> None:
    states.initialize(start=0)
    states.write(DONE)
    states.initialize(state_epoch=2, start=5)
    found = states.summary()
    assert (found.snapshot_epoch, found.state_epoch, found.batches) == (1, 2, ())


def test_an_older_state_epoch_is_fenced(states: ShareStates) -> None:
    states.initialize(state_epoch=2)
    assert refusal(lambda: states.initialize(state_epoch=1)) is ErrorCode.FENCED_STATE_EPOCH
    assert refusal(lambda: states.write(state_epoch=1)) is ErrorCode.FENCED_STATE_EPOCH
    states.write(state_epoch=3)


@pytest.mark.parametrize("epoch", ["leader_epoch", "state_epoch"])
def test_a_negative_epoch_is_no_epoch(states: ShareStates, epoch: str) -> None:
    states.initialize()
    assert refusal(lambda: states.write(**{epoch: -1})) is ErrorCode.INVALID_REQUEST
    if epoch == "leader_epoch":
        assert refusal(lambda: states.read(leader_epoch=-1)) is ErrorCode.INVALID_REQUEST
    else:
        assert refusal(lambda: states.initialize(state_epoch=-1)) is ErrorCode.INVALID_REQUEST


def test_a_late_write_does_not_take_the_state_back(states: ShareStates) -> None:
    states.initialize(start=5)
    states.write(start=5, delivery_complete_count=3)
    states.write(start=5, delivery_complete_count=2)
    assert states.summary().delivery_complete_count == 3
    states.write(start=4, delivery_complete_count=9)
    found = states.summary()
    assert (found.start_offset, found.delivery_complete_count) == (5, 3)
    states.write(start=6, delivery_complete_count=1)
    found = states.summary()
    assert (found.start_offset, found.delivery_complete_count) == (6, 1)


def test_a_read_by_a_new_leader_fences_the_older_ones(states: ShareStates) -> None:
    states.initialize()
    states.read(leader_epoch=4)
    assert refusal(lambda: states.read(leader_epoch=3)) is ErrorCode.FENCED_LEADER_EPOCH
    assert refusal(lambda: states.write(leader_epoch=3)) is ErrorCode.FENCED_LEADER_EPOCH
    states.write(leader_epoch=4)
    assert kinds(states) == ["snapshot", "update", "update"]


def test_reading_with_the_known_leader_epoch_writes_nothing(states: ShareStates) -> None:
    states.initialize()
    states.read()
    assert kinds(states) == ["snapshot"]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (SharePartitionKey("g", TOPIC_ID, -1), ErrorCode.INVALID_REQUEST),
        (SharePartitionKey("g", TOPIC_ID, 2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (SharePartitionKey("g", b"an id of nothing", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_partition_that_does_not_exist_has_no_state(
    states: ShareStates, key: SharePartitionKey, error: ErrorCode
) -> None:
    assert refusal(lambda: states.initialize(key)) is error
    assert refusal(lambda: states.summary(key)) is error
    assert refusal(lambda: states.delete(key)) is error


def test_a_batch_that_ends_before_it_begins_is_refused(states: ShareStates) -> None:
    states.initialize(start=0)
    assert refusal(lambda: states.write(DeliveryBatch(5, 3, 2, 2))) is ErrorCode.INVALID_REQUEST
    assert kinds(states) == ["snapshot"]


def test_a_failed_append_changes_nothing(states: ShareStates) -> None:
    states.initialize(start=0)
    states.logs[0].fail_next = ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is away")
    with pytest.raises(ApiError):
        states.write(DONE)
    assert states.read().batches == ()


def test_nothing_is_served_before_the_topic_exists() -> None:
    assert refusal(ShareStates(is_open=False).read) is ErrorCode.NOT_COORDINATOR


def test_nothing_is_served_while_the_topic_is_loading() -> None:
    states = ShareStates(is_open=False)
    states.coordinator.shards.prepare(1)
    assert refusal(states.read) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    states.coordinator.partition_online(states.logs[0])  # type: ignore[arg-type] # a log in memory
    states.loop.advance(0)
    states.initialize()


# -- records ---------------------------------------------------------------------------------------


def test_after_a_number_of_updates_a_snapshot_follows() -> None:
    states = ShareStates(updates_per_snapshot=2)
    states.initialize(start=0)
    for first in range(0, 50, 10):
        states.write(DeliveryBatch(first, first + 8, 1, 2))
    assert kinds(states) == ["snapshot", "update", "update", "snapshot", "update", "update"]
    assert len(states.read().batches) == 5


def test_a_deleted_state_is_gone_with_one_tombstone(states: ShareStates) -> None:
    states.initialize()
    states.delete()
    states.delete()
    assert kinds(states) == ["snapshot", "tombstone"]
    assert states.summary() == ShareState()


def test_the_states_of_a_deleted_topic_are_deleted(states: ShareStates) -> None:
    states.initialize()
    states.initialize(SharePartitionKey("g", TOPIC_ID, 1))
    del states.topics[TOPIC_ID]
    states.coordinator.on_topics_deleted([TOPIC_ID])
    assert not states.table.states


def test_the_states_of_a_topic_that_was_deleted_before_a_restart_are_deleted(
    states: ShareStates,
) -> None:
    states.initialize()
    del states.topics[TOPIC_ID]
    assert kinds(states.restarted()) == ["snapshot", "tombstone"]


# -- in the background -----------------------------------------------------------------------------


def test_a_state_that_is_not_written_gets_a_new_snapshot(states: ShareStates) -> None:
    states.initialize(start=3)
    states.loop.advance(5 * MINUTE_MS)
    assert kinds(states) == ["snapshot", "snapshot"]
    found = states.summary()
    assert found.snapshot_epoch == 1
    assert found.written_ms - found.created_ms == 5 * MINUTE_MS


@pytest.mark.parametrize("what", ["snapshots", "tombstones"])
def test_a_turn_of_the_loop_writes_the_records_of_some_states(
    states: ShareStates, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(share_coordinator, "STATES_PER_TURN", 10)
    for number in range(50):
        states.initialize(SharePartitionKey(f"g{number}", TOPIC_ID, 0))
    if what == "snapshots":
        states.loop.now_ms += 5 * MINUTE_MS
        states.coordinator.alarm.expire_due()
    else:
        states.coordinator.on_topics_deleted([TOPIC_ID])
    for turn in range(1, 6):
        assert len(kinds(states)) == 50 + 10 * turn
        states.loop.turn()
    assert len(kinds(states)) == 100


@pytest.mark.parametrize("what", ["snapshots", "tombstones"])
def test_a_turn_of_the_loop_writes_to_one_partition_of_the_topic(what: str) -> None:
    logs = [MemoryLog("__share_group_state", partition) for partition in range(10)]
    states = ShareStates(logs=logs)
    for number in range(50):
        states.initialize(SharePartitionKey(f"g{number}", TOPIC_ID, 0))
    written = sum(len(log.stored) for log in logs)
    if what == "snapshots":
        states.loop.now_ms += 5 * MINUTE_MS
        states.coordinator.alarm.expire_due()
    else:
        states.coordinator.on_topics_deleted([TOPIC_ID])
    batches = [sum(len(log.stored) for log in logs) - written]
    for _ in range(20):
        states.loop.turn()
        batches.append(sum(len(log.stored) for log in logs) - written)
    assert batches[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(batches))
    assert batches[-1] == len(logs)


def test_states_that_are_too_large_for_one_batch_get_new_snapshots() -> None:
    states = ShareStates(logs=[MemoryLog("__share_group_state", max_message_bytes=1000)])
    for number in range(50):
        states.initialize(SharePartitionKey(f"g{number}", TOPIC_ID, 0))
    states.loop.advance(5 * MINUTE_MS)
    assert kinds(states) == ["snapshot"] * 100


def test_a_state_that_is_written_between_two_turns_gets_no_other_snapshot(
    states: ShareStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(share_coordinator, "STATES_PER_TURN", 1)
    states.initialize(OTHER)
    states.initialize()
    states.loop.now_ms += 5 * MINUTE_MS
    states.coordinator.alarm.expire_due()
    states.initialize(start=7)
    states.loop.advance(0)
    assert kinds(states) == ["snapshot"] * 4
    assert states.summary().start_offset == 7


def test_when_all_states_are_cold_no_snapshots_follow(states: ShareStates) -> None:
    states.initialize()
    states.loop.advance(60 * MINUTE_MS)
    assert states.summary().snapshot_epoch == 1


def test_the_log_is_pruned_before_the_oldest_of_the_newest_snapshots(states: ShareStates) -> None:
    states.initialize()
    states.initialize(OTHER)
    states.initialize()
    states.loop.advance(4 * MINUTE_MS)
    assert states.logs[0].log_start_offset == 0
    states.write(DONE)
    states.loop.advance(3 * MINUTE_MS)
    # The snapshots of both, at offsets 1 and 2, were renewed after five minutes.
    assert states.logs[0].log_start_offset == 4
    assert states.restarted().table.states == states.table.states


def test_a_tombstone_ends_what_is_redundant(states: ShareStates) -> None:
    states.initialize()
    states.delete()
    assert states.table.redundant_before == 1
    states.initialize(OTHER)
    assert states.table.redundant_before == 2


def test_a_log_that_cannot_be_pruned_does_not_stop_the_others(
    states: ShareStates, monkeypatch: pytest.MonkeyPatch
) -> None:
    states.initialize()
    states.initialize()

    def fail(_offset: int) -> bool:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is away")

    monkeypatch.setattr(states.logs[0], "increment_log_start_offset", fail)
    states.loop.advance(8 * MINUTE_MS)
    monkeypatch.undo()
    states.loop.advance(7 * MINUTE_MS)
    assert states.logs[0].log_start_offset > 0


def test_a_closed_coordinator_does_nothing_more(states: ShareStates) -> None:
    states.initialize()
    states.coordinator.close()
    states.loop.advance(60 * MINUTE_MS)
    assert kinds(states) == ["snapshot"]
