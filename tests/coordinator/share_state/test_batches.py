"""Batches are combined as Apache Kafka does it, and each offset keeps its highest delivery."""

from collections.abc import Collection
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.share_state import batches
from odradek.coordinator.share_state.batches import NO_OFFSET, DeliveryBatch, combined, with_new
from tests.support.lengths import by_length
from tests.support.share_batches import KafkaCombiner

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
HIGHEST_OFFSET = 12

a_batch = st.builds(
    lambda first, size, count, state: DeliveryBatch(first, first + size, count, state),
    st.integers(0, HIGHEST_OFFSET),
    st.integers(0, 5),
    st.integers(1, 3),
    st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED]),
)
some_batches = st.lists(a_batch, max_size=5)
start_offsets = st.just(NO_OFFSET) | st.integers(0, HIGHEST_OFFSET + 6)


def available(first: int, last: int, count: int = 1) -> DeliveryBatch:
    return DeliveryBatch(first, last, count, AVAILABLE)


def acknowledged(first: int, last: int, count: int = 1) -> DeliveryBatch:
    return DeliveryBatch(first, last, count, ACKNOWLEDGED)


def test_neighbours_with_equal_deliveries_are_united() -> None:
    assert combined([available(0, 4)], [available(5, 9)], NO_OFFSET) == (available(0, 9),)


def test_neighbours_with_different_deliveries_are_kept() -> None:
    both = (available(0, 4), acknowledged(5, 9))
    assert combined(both[:1], both[1:], NO_OFFSET) == both


def test_a_higher_delivery_count_wins_over_a_higher_state() -> None:
    assert combined([acknowledged(0, 9)], [available(0, 9, 2)], NO_OFFSET) == (available(0, 9, 2),)


def test_a_higher_state_wins_at_the_same_delivery_count() -> None:
    assert combined([available(0, 9)], [acknowledged(3, 5)], NO_OFFSET) == (
        available(0, 2),
        acknowledged(3, 5),
        available(6, 9),
    )


def test_an_older_delivery_fills_only_what_is_not_known() -> None:
    assert combined([acknowledged(3, 5, 2)], [available(0, 9)], NO_OFFSET) == (
        available(0, 2),
        acknowledged(3, 5, 2),
        available(6, 9),
    )


def test_offsets_before_the_start_offset_are_left_out() -> None:
    stored = [acknowledged(0, 4), available(5, 9)]
    assert combined(stored, [], 7) == (available(7, 9),)
    assert combined(stored, [], 10) == ()


def test_a_batch_that_ends_before_it_begins_is_left_out() -> None:
    reversed_batch = acknowledged(5, 3, 2)
    assert combined([available(0, 9)], [reversed_batch], NO_OFFSET) == (available(0, 9),)
    assert combined([], [reversed_batch], NO_OFFSET) == ()


@given(stored=some_batches, new=some_batches, start=start_offsets)
def test_new_batches_are_combined_with_those_that_they_meet(
    stored: list[DeliveryBatch], new: list[DeliveryBatch], start: int
) -> None:
    before = combined((), stored, NO_OFFSET)
    assert with_new(before, new, start) == combined(before, new, start)


def test_a_write_is_not_combined_with_batches_far_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = tuple(available(first, first, 1 + first % 2) for first in range(0, 9_000, 2))
    met: list[int] = []

    def counted(some: Collection[DeliveryBatch], *arguments: Any) -> tuple[DeliveryBatch, ...]:
        met.append(len(some))
        return combined(some, *arguments)

    monkeypatch.setattr(batches, "combined", counted)
    found = with_new(stored, [acknowledged(4_000, 4_001)], 0)
    assert (len(found), met) == (len(stored), [2])


@given(stored=some_batches, new=some_batches, start=start_offsets)
def test_each_offset_has_its_highest_delivery_once(
    stored: list[DeliveryBatch], new: list[DeliveryBatch], start: int
) -> None:
    highest: dict[int, tuple[int, int]] = {}
    for batch in (*stored, *new):
        for offset in range(max(batch.first_offset, start), batch.last_offset + 1):
            highest[offset] = max(highest.get(offset, (0, 0)), batch[2:])
    found = combined(stored, new, start)
    assert found == tuple(sorted(found))
    for one, after in pairwise(found):
        assert one.last_offset + 1 < after.first_offset or one[2:] != after[2:], "not united"
    pairs = [
        (offset, batch[2:])
        for batch in found
        for offset in range(batch.first_offset, batch.last_offset + 1)
    ]
    assert len(dict(pairs)) == len(pairs), "batches overlap"
    assert dict(pairs) == highest


@pytest.mark.java
def test_batches_are_combined_as_by_kafka() -> None:
    cases = KafkaCombiner.random_cases(by_length(2_000, 100_000))
    for case, expected in zip(cases, KafkaCombiner.answers(cases), strict=True):
        assert combined(*case) == expected, case
