"""Ranges of offsets with their delivery state, and how stored and new ranges are combined.

A later delivery of a record has a higher delivery count, and its states have an order of their own.
So where ranges overlap, the higher pair of count and state counts. Neighbours with equal pairs are
united. Kafka: PersisterStateBatch, PersisterStateBatchCombiner.
"""

import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

NO_OFFSET = -1


class DeliveryBatch(NamedTuple):
    """Offsets, both ends included. The order of the fields is the order of batches."""

    first_offset: int
    last_offset: int
    delivery_count: int
    delivery_state: int

    @property
    def delivery(self) -> tuple[int, int]:
        """What decides where batches overlap: the higher one counts."""
        return self.delivery_count, self.delivery_state


def combined(
    stored: Iterable[DeliveryBatch], new: Iterable[DeliveryBatch], start_offset: int
) -> tuple[DeliveryBatch, ...]:
    """Combine batches, without offsets before `start_offset` (NO_OFFSET: keep all).

    Batches are taken in order. Each is compared with the next one only: a batch that is complete is
    not united with the one before it, as in Kafka. Batches that end before they begin are left out:
    with them the division would not end, as it does not end in Kafka.

    There may be thousands of batches, of which few overlap. So only pieces are in a heap.
    """
    in_order = sorted(_from(stored, start_offset) + _from(new, start_offset))
    pieces: list[DeliveryBatch] = []
    complete: list[DeliveryBatch] = []
    before: DeliveryBatch | None = None
    index, count = 0, len(in_order)
    while index < count or pieces:
        if index < count and not (pieces and pieces[0] < in_order[index]):
            after = in_order[index]
            index += 1
        else:
            after = heapq.heappop(pieces)
        if before is None:
            before = after
            continue
        # Most pairs are apart. Fields by index, because a lookup by name takes longer.
        gap = after[0] - before[1]
        is_equal = gap <= 1 and before[2] == after[2] and before[3] == after[3]
        if gap < 1 or is_equal:
            for piece in [_united(before, after)] if is_equal else _divided(before, after):
                heapq.heappush(pieces, piece)
            before = None
        else:
            complete.append(before)
            before = after
    return tuple(complete) if before is None else (*complete, before)


def _from(batches: Iterable[DeliveryBatch], start_offset: int) -> list[DeliveryBatch]:
    return [
        batch if batch[0] >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch[0] <= batch[1] >= start_offset
    ]


def _united(before: DeliveryBatch, after: DeliveryBatch) -> DeliveryBatch:
    return before._replace(last_offset=max(before.last_offset, after.last_offset))


def _divided(before: DeliveryBatch, after: DeliveryBatch) -> Iterator[DeliveryBatch]:
    """Divide overlapping batches with different deliveries, of which `before` is first in order."""
    if before.delivery > after.delivery:
        yield before
        if after.last_offset > before.last_offset:
            yield after._replace(first_offset=before.last_offset + 1)
        return
    if before.first_offset < after.first_offset:
        yield before._replace(last_offset=after.first_offset - 1)
    yield after
    if before.last_offset > after.last_offset:
        yield before._replace(first_offset=after.last_offset + 1)
