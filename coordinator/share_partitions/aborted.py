"""Leaves the records of aborted transactions out of an acquisition, and archives them.

Members that read committed records only do not get them; nobody acknowledges them.
Kafka: SharePartition.filterAbortedTransactionalAcquiredRecords.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .acquisition import Acquired, FetchedBatch
from .in_flight import RecordState
from .share_partition import SharePartition


class AbortedFrom(NamedTuple):
    """An aborted transaction: its producer, and the offset of its first record."""

    producer_id: int
    first_offset: int


def without_aborted(
    partition: SharePartition,
    acquired: Sequence[Acquired],
    fetched: Iterable[FetchedBatch],
    aborted: Iterable[AbortedFrom],
) -> list[Acquired]:
    """Archive the acquired records of aborted transactions, and return the others."""
    left = list(acquired)
    if not left:
        return left
    for batch in aborted_batches(fetched, aborted):
        first, last = batch.base_offset, batch.last_offset
        floor = partition.batches.floor(first)
        if floor is not None:
            in_flight = partition.batches.between(floor.first_offset, last)
            partition.complete_count += partition.archive(
                in_flight, first, last, RecordState.ACQUIRED
            )
        left = [piece for one in left for piece in _without(one, first, last)]
    return left


def aborted_batches(
    fetched: Iterable[FetchedBatch], aborted: Iterable[AbortedFrom]
) -> list[FetchedBatch]:
    """The fetched batches that belong to aborted transactions."""
    waiting = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
    producers: set[int] = set()
    found = []
    for batch in fetched:
        if batch.producer_id < 0:
            continue
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if batch.is_abort_marker:
            producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            found.append(batch)
    return found


def _without(one: Acquired, first: int, last: int) -> list[Acquired]:
    if one.last_offset < first or one.first_offset > last:
        return [one]
    pieces = []
    if one.first_offset < first:
        pieces.append(one._replace(last_offset=first - 1))
    if one.last_offset > last:
        pieces.append(one._replace(first_offset=last + 1))
    return pieces
