"""Ranges of offsets with their delivery state, and how stored and new ranges are combined.

A later delivery of a record has a higher delivery count, and its states have an order of their own.
So where ranges overlap, the higher pair of count and state counts. Neighbours with equal pairs are
united. Kafka: PersisterStateBatch, PersisterStateBatchCombiner.
"""

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

NO_OFFSET = -1


class DeliveryBatch(NamedTuple):
    """Offsets, both ends included. The order of the fields is the order of batches."""

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int


_FIRST, _LAST = itemgetter(0), itemgetter(1)


def combined(
    stored: Iterable[DeliveryBatch], new: Iterable[DeliveryBatch], start_offset: int
) -> tuple[DeliveryBatch, ...]:
    """Combine batches, without offsets before `start_offset` (NO_OFFSET: keep all).

    Batches that end before they begin are left out. In Kafka they are an error of the coordinator.
    """
    in_order = sorted(_from(stored, start_offset) + _from(new, start_offset))
    found: list[DeliveryBatch] = []
    # Those that have begun, the highest first: negative delivery count, state, and last offset.
    begun: list[tuple[int, int, int]] = []
    index, count, position = 0, len(in_order), 0
    while index < count or begun:
        # Of thousands of batches few overlap. Fields by index: a lookup by name takes longer.
        if not begun:
            batch = in_order[index]
            if index + 1 == count or in_order[index + 1][0] > batch[1]:
                _append(found, batch)
                index += 1
                continue
            position = batch[0]
        while index < count and in_order[index][0] <= position:
            _, last, deliveries, state = in_order[index]
            heapq.heappush(begun, (-deliveries, -state, -last))
            index += 1
        deliveries, state, last = (-each for each in begun[0])
        # It counts until it ends, or until the next one begins.
        end = last if index == count else min(last, in_order[index][0] - 1)
        _append(found, DeliveryBatch(position, end, deliveries, state))
        position = end + 1
        while begun and -begun[0][2] < position:
            heapq.heappop(begun)
    return tuple(found)


def with_new(
    stored: tuple[DeliveryBatch, ...], new: Iterable[DeliveryBatch], start_offset: int
) -> tuple[DeliveryBatch, ...]:
    """Like `combined`, for stored batches that `combined` has made.

    A write is about some of thousands of batches: those that it does not meet stay as they are.
    """
    changed = _from(new, start_offset)
    stored = stored[bisect_left(stored, start_offset, key=_LAST) :]
    if stored and stored[0].first_offset < start_offset:
        stored = (stored[0]._replace(first_offset=start_offset), *stored[1:])
    if not changed:
        return stored
    low = bisect_left(stored, min(map(_FIRST, changed)) - 1, key=_LAST)
    high = bisect_right(stored, max(map(_LAST, changed)) + 1, key=_FIRST)
    return stored[:low] + combined(stored[low:high], changed, start_offset) + stored[high:]


def _append(found: list[DeliveryBatch], batch: DeliveryBatch) -> None:
    """Append a batch, or unite it with the one before."""
    if found:
        before = found[-1]
        if before[1] + 1 == batch[0] and before[2:] == batch[2:]:
            found[-1] = before._replace(last_offset=batch[1])
            return
    found.append(batch)


def _from(batches: Iterable[DeliveryBatch], start_offset: int) -> list[DeliveryBatch]:
    return [
        batch if batch[0] >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch[0] <= batch[1] >= start_offset
    ]
