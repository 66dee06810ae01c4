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

    Usually thousands are stored and a few are new. So only new batches and pieces are in a heap,
    and the stored ones, which are in order already, are in a list.
    """
    in_order = sorted(_from(stored, start_offset), reverse=True)
    pieces = list(_from(new, start_offset))
    heapq.heapify(pieces)
    complete: list[DeliveryBatch] = []
    before: DeliveryBatch | None = None
    while in_order or pieces:
        is_stored = bool(in_order) and not (pieces and pieces[0] < in_order[-1])
        after = in_order.pop() if is_stored else heapq.heappop(pieces)
        if before is None:
            before = after
            continue
        gap = after.first_offset - before.last_offset
        is_equal = gap <= 1 and before.delivery == after.delivery
        if gap < 1 or is_equal:
            for piece in [_united(before, after)] if is_equal else _divided(before, after):
                heapq.heappush(pieces, piece)
            before = None
        else:
            complete.append(before)
            before = after
    return tuple(complete) if before is None else (*complete, before)


def _from(batches: Iterable[DeliveryBatch], start_offset: int) -> Iterator[DeliveryBatch]:
    for batch in batches:
        if batch.last_offset < max(batch.first_offset, start_offset):
            continue
        yield batch if batch[0] >= start_offset else batch._replace(first_offset=start_offset)


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
