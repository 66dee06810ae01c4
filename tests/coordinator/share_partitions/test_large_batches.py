"""Batches whose headers announce millions of records: members get parts of them, in runs."""

from collections.abc import Sequence

from odradek.coordinator.share_partitions.acquisition import (
    AcquireCall,
    FetchedBatch,
    acquire,
)
from odradek.coordinator.share_partitions.changes import (
    AcknowledgeCall,
    Acknowledgement,
    AcknowledgeType,
    acknowledge,
    expire,
)
from odradek.coordinator.share_partitions.in_flight import DeliveryRules, RecordState
from odradek.coordinator.share_partitions.share_partition import Limits, SharePartition
from odradek.coordinator.share_state.batches import DeliveryBatch
from odradek.coordinator.share_state.state import ShareState

COUNT = 3_000_000
WHOLE = FetchedBatch(0, COUNT - 1)
LIMITS = Limits(max_delivery_count=5, max_in_flight=2_000)
LOCK_END_MS = 100
LARGEST = LIMITS.max_in_flight


def fetch(partition: SharePartition, *, max_records: int = 500) -> list[tuple[int, int]]:
    offset = partition.offset_to_fetch(LIMITS)
    if offset is None:
        return []
    call = AcquireCall("m", max_records, 500, False, LOCK_END_MS)
    acquired = acquire(partition, call, LIMITS, offset, [WHOLE])
    return [(one.first_offset, one.last_offset) for one in acquired]


def accept(partition: SharePartition, *ranges: tuple[int, int]) -> None:
    settle(partition, *((first, last, [AcknowledgeType.ACCEPT]) for first, last in ranges))


def settle(partition: SharePartition, *wanted: tuple[int, int, Sequence[int]]) -> None:
    call = AcknowledgeCall("m", DeliveryRules(LIMITS.max_delivery_count), None)
    acknowledge(partition, call, [Acknowledgement(*one) for one in wanted]).apply()


def runs(partition: SharePartition) -> int:
    return sum(1 for batch in partition.batches for _ in batch.states())


def test_a_large_batch_is_acquired_in_parts() -> None:
    partition = SharePartition(ShareState(), 0)
    got = []
    while (found := fetch(partition))[-1:] != [(COUNT - LARGEST, COUNT - 1)]:
        got += found
        assert fetch(partition) == []  # no more may be in flight
        accept(partition, *found)
    got += found
    assert got == [(first, first + LARGEST - 1) for first in range(0, COUNT, LARGEST)]


def test_a_part_that_is_released_is_acquired_again() -> None:
    partition = SharePartition(ShareState(), 0)
    assert fetch(partition) == [(0, LARGEST - 1)]
    accept(partition, (0, 9), (20, 29))
    expire(partition, LOCK_END_MS, DeliveryRules(LIMITS.max_delivery_count)).apply()
    assert fetch(partition) == [(10, 19), (30, LARGEST - 1)]


def test_an_acknowledged_record_costs_a_run_and_not_its_neighbours() -> None:
    partition = SharePartition(ShareState(), 0)
    fetch(partition)
    accept(partition, (1_000, 1_000))
    assert runs(partition) == 3
    for offset in range(1_001, 1_100):
        accept(partition, (offset, offset))
    assert runs(partition) == 3
    accept(partition, (0, 999))
    assert runs(partition) == 2
    assert partition.start_offset == 1_100


def test_types_of_single_records_are_kept_by_runs() -> None:
    partition = SharePartition(ShareState(), 0)
    fetch(partition)
    kinds = [AcknowledgeType.ACCEPT] * 3 + [AcknowledgeType.RELEASE] * 3 + [AcknowledgeType.GAP]
    settle(partition, (1, 7, kinds))
    [batch] = partition.batches
    assert [(first, last, state.state) for first, last, state in batch.states()] == [
        (0, 0, RecordState.ACQUIRED),
        (1, 3, RecordState.ACKNOWLEDGED),
        (4, 6, RecordState.AVAILABLE),
        (7, 7, RecordState.ARCHIVED),
        (8, LARGEST - 1, RecordState.ACQUIRED),
    ]


def test_a_large_range_that_kafka_has_stored_is_delivered_by_runs() -> None:
    stored = DeliveryBatch(0, COUNT - 1, 1, RecordState.AVAILABLE)
    partition = SharePartition(ShareState(start_offset=0, batches=(stored,)), 0)
    assert fetch(partition, max_records=COUNT) == [(0, COUNT - 1)]
    accept(partition, (7, 7), (COUNT - 1, COUNT - 1))
    assert runs(partition) == 4
