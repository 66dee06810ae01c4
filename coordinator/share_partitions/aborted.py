"""Leaves the records of aborted transactions out of an acquisition, and archives them.

Members that read committed records only do not get them; nobody acknowledges them. So the start
offset moves past them at once. In Kafka it waits for an acknowledgement of others: where none are
left, and no more records may be in flight, the group stops there.
Kafka: SharePartition.filterAbortedTransactionalAcquiredRecords.
"""

from collections.abc import Iterable, Iterator, Sequence
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
    if not acquired:
        return []
    gone = aborted_batches(fetched, aborted)
    for batch in gone:
        first, last = batch.base_offset, batch.last_offset
        floor = partition.batches.floor(first)
        if floor is not None:
            in_flight = partition.batches.between(floor.first_offset, last)
            partition.complete_count += partition.archive(
                in_flight, first, last, RecordState.ACQUIRED
            )
    if gone:
        partition.move_start()
    return list(_without(acquired, gone))


def aborted_batches(
    fetched: Iterable[FetchedBatch], aborted: Iterable[AbortedFrom]
) -> list[FetchedBatch]:
    """The fetched batches that belong to aborted transactions."""
    waiting = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
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


def _without(acquired: Iterable[Acquired], gone: Sequence[FetchedBatch]) -> Iterator[Acquired]:
    """The acquired ranges without the offsets of some batches. Both are in the order of offsets."""
    place = 0
    for run in acquired:
        first = run.first_offset
        while place < len(gone) and gone[place].base_offset <= run.last_offset:
            batch = gone[place]
            if batch.base_offset > first:
                yield run._replace(first_offset=first, last_offset=batch.base_offset - 1)
            first = max(first, batch.last_offset + 1)
            if first > run.last_offset:
                break  # the batch may go on in the next range
            place += 1
        if first <= run.last_offset:
            yield run._replace(first_offset=first)
