"""Thousands of batches in flight: they are not all looked at to find one that is available."""

from odradek.coordinator.share_partitions.acquisition import AcquireCall, FetchedBatch, acquire
from odradek.coordinator.share_partitions.changes import (
    AcknowledgeCall,
    Acknowledgement,
    AcknowledgeType,
    acknowledge,
)
from odradek.coordinator.share_partitions.in_flight import DeliveryRules
from odradek.coordinator.share_partitions.share_partition import Limits, SharePartition
from odradek.coordinator.share_state.state import ShareState
from tests.coordinator.share_partitions.test_restored_state import DONE, restored
from tests.support.call_counts import steps_of

COUNT = 2_000
LAST = COUNT - 1
FEW_STEPS = 50
LIMITS = Limits(max_delivery_count=5, max_in_flight=COUNT)


def fetch(partition: SharePartition, offset: int, count: int) -> None:
    """Acquire records, each of them a batch."""
    fetched = [FetchedBatch(each, each) for each in range(offset, offset + count)]
    acquire(partition, AcquireCall("m", count, 1, False, 100), LIMITS, offset, fetched)


def settle(partition: SharePartition, first: int, last: int, kind: AcknowledgeType) -> None:
    call = AcknowledgeCall("m", DeliveryRules(LIMITS.max_delivery_count), None)
    acknowledge(partition, call, [Acknowledgement(first, last, [kind])]).apply()


def release(partition: SharePartition, offset: int) -> None:
    settle(partition, offset, offset, AcknowledgeType.RELEASE)


def test_the_last_of_many_batches_is_found_at_once() -> None:
    partition = SharePartition(ShareState(), 0)
    fetch(partition, 0, COUNT)
    release(partition, LAST)
    assert steps_of(partition.next_fetch_offset) < FEW_STEPS
    assert partition.next_fetch_offset() == LAST
    release(partition, 0)
    assert partition.next_fetch_offset() == 0
    fetch(partition, 0, 1)
    assert steps_of(partition.next_fetch_offset) < FEW_STEPS
    assert partition.next_fetch_offset() == LAST
    fetch(partition, LAST, 1)
    assert steps_of(partition.next_fetch_offset) < FEW_STEPS
    assert partition.next_fetch_offset() == COUNT


def test_a_gap_after_many_batches_is_searched_for_once() -> None:
    partition = restored(*((each, each, DONE) for each in (*range(1, COUNT), COUNT + 1)))
    assert partition.next_fetch_offset() == 0
    fetch(partition, 0, 1)
    assert partition.next_fetch_offset() == COUNT
    assert steps_of(partition.next_fetch_offset) < FEW_STEPS


def test_each_of_several_batches_that_are_available_is_found() -> None:
    partition = SharePartition(ShareState(), 0)
    fetch(partition, 0, 6)
    for offset in (4, 2, 1):
        release(partition, offset)
    for offset in (1, 2, 4, 6):
        assert partition.next_fetch_offset() == offset
        fetch(partition, offset, 1)


def test_a_gap_is_searched_for_after_the_start_offset() -> None:
    partition = restored((5, 9, DONE), (15, 19, DONE))
    acquire(partition, AcquireCall("m", 5, 5, False, 100), LIMITS, 0, [FetchedBatch(0, 4)])
    settle(partition, 0, 4, AcknowledgeType.ACCEPT)
    assert partition.start_offset == partition.next_fetch_offset() == 10
