"""A share-partition of stored state: where it begins, what can be fetched, and what is refused."""

import pytest

from odradek.coordinator.share_partitions.in_flight import RecordState
from odradek.coordinator.share_partitions.share_partition import (
    InvalidShareStateError,
    SharePartition,
)
from odradek.coordinator.share_state.batches import DeliveryBatch
from odradek.coordinator.share_state.state import ShareState

AVAILABLE, DONE, ARCHIVED = RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVED


def restored(*stored: tuple[int, int, int], start: int = 0) -> SharePartition:
    """From batches: the first offset, the last, and the state."""
    batches = tuple(DeliveryBatch(first, last, 1, state) for first, last, state in stored)
    return SharePartition(ShareState(start_offset=start, batches=batches), start)


def test_without_batches_the_start_offset_is_the_next() -> None:
    partition = restored(start=7)
    assert (partition.start_offset, partition.next_fetch_offset()) == (7, 7)
    assert partition.in_flight_count == 0
    assert partition.is_caught_up


@pytest.mark.parametrize("done", [DONE, ARCHIVED])
def test_it_begins_after_the_records_that_are_done(done: RecordState) -> None:
    partition = restored((0, 9, done), (10, 19, AVAILABLE), (20, 29, done))
    assert (partition.start_offset, partition.end_offset) == (10, 29)
    assert partition.next_fetch_offset() == 10
    assert (partition.in_flight_count, partition.complete_count) == (20, 10)
    assert not partition.has_gaps


def test_if_all_are_done_it_begins_after_the_last() -> None:
    partition = restored((0, 9, DONE), (10, 19, ARCHIVED))
    assert (partition.start_offset, partition.next_fetch_offset()) == (20, 20)
    assert (partition.in_flight_count, partition.complete_count) == (0, 0)
    assert partition.is_caught_up


def test_done_records_after_an_available_one_are_counted() -> None:
    partition = restored((0, 4, AVAILABLE), (5, 9, DONE), start=0)
    assert (partition.start_offset, partition.complete_count) == (0, 5)
    assert partition.next_fetch_offset() == 0


@pytest.mark.parametrize(
    ("stored", "start_offset"),
    [
        ([(5, 9, AVAILABLE)], 0),
        ([(5, 9, DONE)], 0),
        ([(1, 9, AVAILABLE)], 0),
        ([(0, 4, DONE), (8, 9, AVAILABLE)], 5),
        ([(0, 4, DONE), (6, 9, DONE)], 5),
        ([(0, 4, DONE), (5, 9, DONE), (12, 13, AVAILABLE), (20, 29, AVAILABLE)], 10),
    ],
)
def test_records_that_no_batch_has_are_fetched_first(
    stored: list[tuple[int, int, int]], start_offset: int
) -> None:
    partition = restored(*stored)
    assert partition.has_gaps
    assert partition.start_offset == start_offset
    assert partition.next_fetch_offset() == start_offset


def test_a_gap_ends_where_its_records_have_been_acquired() -> None:
    partition = restored((3, 5, AVAILABLE), (8, 9, AVAILABLE))
    partition.close_gap_before(3)
    assert partition.next_fetch_offset() == 3
    partition.close_gap_before(10)
    assert not partition.has_gaps


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ([(4, 9, AVAILABLE)], "batch 4 to 9 follows offset 4"),
        ([(5, 9, DONE), (9, 10, DONE)], "batch 9 to 10 follows offset 9"),
        ([(9, 8, DONE)], "batch 9 to 8 follows offset 4"),
        ([(5, 9, 77)], "77 of 5 to 9 is not a delivery state"),
    ],
)
def test_state_that_contradicts_itself_is_refused(
    stored: list[tuple[int, int, int]], text: str
) -> None:
    with pytest.raises(InvalidShareStateError, match=text):
        restored(*stored, start=5)
