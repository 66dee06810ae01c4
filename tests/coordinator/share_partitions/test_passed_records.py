"""Records that no member gets: those of aborted transactions, and those that compaction removes.

The start offset passes them, so that others may be in flight, and nothing is fetched in a circle.
"""

from collections.abc import Sequence

from odradek.coordinator.share_partitions.aborted import AbortedFrom, without_aborted
from odradek.coordinator.share_partitions.acquisition import (
    AcquireCall,
    Acquired,
    FetchedBatch,
    acquire,
)
from odradek.coordinator.share_partitions.changes import release
from odradek.coordinator.share_partitions.in_flight import DeliveryRules
from odradek.coordinator.share_partitions.share_partition import Limits, SharePartition
from odradek.coordinator.share_state.state import ShareState
from tests.coordinator.share_partitions.test_restored_state import AVAILABLE, DONE, restored

LIMITS = Limits(max_delivery_count=5, max_in_flight=20)
PRODUCER = 7


def batches(*first_offsets: int) -> list[FetchedBatch]:
    """Batches of ten records of one transaction."""
    return [
        FetchedBatch(first, first + 9, producer_id=PRODUCER, is_transactional=True)
        for first in first_offsets
    ]


def fetch(
    partition: SharePartition, log: Sequence[FetchedBatch], *, aborted: bool = False
) -> list[Acquired]:
    """What a member gets of a log that has these batches."""
    offset = partition.offset_to_fetch(LIMITS)
    assert offset is not None, "no more may be in flight"
    fetched = [batch for batch in log if batch.last_offset >= offset]
    acquired = acquire(partition, AcquireCall("m", 10, 10, False, 1000), LIMITS, offset, fetched)
    ended = [AbortedFrom(PRODUCER, 0)] if aborted else []
    return without_aborted(partition, acquired, fetched, ended)


def test_an_aborted_transaction_may_be_longer_than_what_may_be_in_flight() -> None:
    partition = SharePartition(ShareState(), 0)
    log = [
        *batches(0, 10, 20, 30),
        FetchedBatch(40, 40, producer_id=PRODUCER, is_abort_marker=True),
    ]
    for _ in range(4):
        assert fetch(partition, log, aborted=True) == []
    assert (partition.start_offset, partition.in_flight_count) == (40, 0)
    assert fetch(partition, log, aborted=True) == [Acquired(40, 40, 1)]


def test_aborted_records_after_one_that_is_not_done_stay_in_flight() -> None:
    partition = SharePartition(ShareState(), 0)
    log = [FetchedBatch(0, 9), *batches(10, 20)]
    assert fetch(partition, log) == [Acquired(0, 9, 1)]
    assert fetch(partition, log, aborted=True) == []
    assert (partition.start_offset, partition.end_offset) == (0, 19)
    assert partition.complete_count == 10


def test_the_start_offset_passes_a_gap_that_compaction_has_emptied() -> None:
    partition = restored((10, 19, DONE), (20, 29, AVAILABLE))
    assert partition.next_fetch_offset() == 0
    assert fetch(partition, batches(10, 20)) == [Acquired(20, 29, 2)]
    assert (partition.start_offset, partition.complete_count) == (20, 0)
    assert partition.next_fetch_offset() == 30


def test_the_start_offset_passes_what_is_done_after_an_empty_gap() -> None:
    partition = restored((10, 29, DONE))
    assert fetch(partition, batches(30)) == [Acquired(30, 39, 1)]
    assert (partition.start_offset, partition.complete_count) == (30, 0)


def test_a_gap_between_batches_that_compaction_has_emptied_is_not_fetched_again() -> None:
    partition = restored((0, 9, AVAILABLE), (20, 29, DONE))
    log = batches(0, 20, 30)
    assert fetch(partition, log) == [Acquired(0, 9, 2)]
    assert partition.next_fetch_offset() == 10
    assert fetch(partition, log) == []
    assert partition.next_fetch_offset() == 30
    assert partition.start_offset == 0


def test_all_that_is_in_flight_may_be_compacted_away() -> None:
    partition = SharePartition(ShareState(), 0)
    log = batches(0, 10)
    fetch(partition, log)
    fetch(partition, log)
    release(partition, "m", DeliveryRules(LIMITS.max_delivery_count)).apply()
    assert fetch(partition, batches(30)) == [Acquired(30, 39, 1)]
    assert (partition.start_offset, partition.complete_count) == (30, 0)


def test_nothing_is_acquired_after_what_may_be_in_flight() -> None:
    """The last records in flight are compacted away, and those before them are another's."""
    partition = SharePartition(ShareState(), 0)
    log = batches(0, 10)
    fetch(partition, log)
    [second] = fetch(partition, log)
    for batch in partition.batches.between(second.first_offset, second.last_offset):
        assert batch.whole is not None
        batch.whole.member_id = "n"
    release(partition, "n", DeliveryRules(LIMITS.max_delivery_count)).apply()
    assert fetch(partition, batches(30)) == []
    assert partition.offset_to_fetch(LIMITS) is None
    assert (partition.start_offset, partition.end_offset) == (0, 19)
