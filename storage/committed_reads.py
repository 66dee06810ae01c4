"""Limits a slice to what a read_committed consumer may see, and lists aborted transactions in it.

Such a consumer sees nothing at or after the last stable offset, where the oldest open transaction
begins. All transactions before it are committed or aborted. Records of aborted transactions are
still in the slice; the consumer drops them with the help of a list of all aborted transactions that
overlap the slice. The index of a segment lists the transactions whose marker is in that segment. So
the search continues in later segments, until an entry's last stable offset is at or after the end
of the slice: then no later entry can overlap.

A slice ends early if it would have more than MAX_ABORTED such transactions: a slice of many
megabytes can have hundreds of thousands, and to list them takes long. Only transactions that were
open at the same time can be more.

Kafka: LocalLog.addAbortedTransactions, TransactionIndex.collectAbortedTxns.
"""

import sys
from bisect import bisect_left
from operator import attrgetter
from typing import NamedTuple

from .reading_ahead import read_each
from .segment import Segment
from .segment_list import SegmentList
from .slices import RecordsSlice
from .txn_index import AbortedTransaction

# Transactions that a slice lists, before it ends early.
MAX_ABORTED = 10_000

_LAST_OFFSET = attrgetter("last_offset")


class CommittedRead(NamedTuple):
    """Whole batches before the last stable offset, and the aborted transactions in them."""

    records: RecordsSlice
    aborted: list[AbortedTransaction]


def cut_to_committed(
    segments: SegmentList,
    records: RecordsSlice,
    offset: int,
    last_stable_offset: int,
    log_end_offset: int,
) -> CommittedRead:
    """Limit a slice that was read from `offset` on. Raises OSError, CorruptRecordError."""
    if last_stable_offset < log_end_offset:
        records = cut_before(segments, records, offset, last_stable_offset)
    if not records.size_bytes:
        return CommittedRead(records, [])
    index = _index_of(segments, records, offset)
    segment = segments[index]
    end_position = records.position + records.size_bytes
    if end_position < segment.size_bytes:
        end_offset = segment.batch_at(end_position).header.base_offset
    elif index + 1 < len(segments):
        end_offset = segments[index + 1].base_offset
    else:
        end_offset = log_end_offset
    aborted, listed_to = aborted_between(segments, index, offset, end_offset, MAX_ABORTED)
    if listed_to < end_offset:
        records = cut_before(segments, records, offset, listed_to)
    return CommittedRead(records, aborted)


def cut_before(
    segments: SegmentList, records: RecordsSlice, offset: int, end_offset: int
) -> RecordsSlice:
    """Cut a slice, read from `offset` on, before the batch that begins with `end_offset`.

    Raises OSError, CorruptRecordError.
    """
    size = 0
    if offset < end_offset:
        index = _index_of(segments, records, offset)
        size = max(_bytes_before(segments, index, end_offset, records.position), 0)
    if size >= records.size_bytes:
        return records
    return RecordsSlice(records.file, records.position, size)


def readable_bytes(
    segments: SegmentList, records: RecordsSlice, offset: int, end_offset: int, max_bytes: int
) -> int:
    """What a reader that waits for bytes counts for a slice: see PartitionLog.readable_bytes."""
    if offset >= end_offset:
        return 0
    index = _index_of(segments, records, offset)
    if segments.floor_index(end_offset) > index:
        return sys.maxsize
    size = min(_bytes_before(segments, index, end_offset, records.position), max_bytes)
    return max(size, records.size_bytes)


def aborted_between(
    segments: SegmentList,
    first_index: int,
    start_offset: int,
    end_offset: int,
    max_count: int = sys.maxsize,
) -> tuple[list[AbortedTransaction], int]:
    """Aborted transactions that overlap [start, end), searched from segment `first_index` on.

    After `max_count` of them the range ends behind the last one's marker. Returns its end, too.
    """
    found: list[AbortedTransaction] = []
    for _, entries in read_each(segments, Segment.aborted, first_index):
        first = bisect_left(entries, start_offset, key=_LAST_OFFSET)
        for position in range(first, len(entries)):
            transaction = entries[position]
            if transaction.first_offset < end_offset:
                found.append(transaction)
                if len(found) == max_count:
                    end_offset = min(end_offset, transaction.last_offset + 1)
            if transaction.last_stable_offset >= end_offset:
                return found, end_offset
    return found, end_offset


def _index_of(segments: SegmentList, records: RecordsSlice, offset: int) -> int:
    """The index of the slice's segment: the one that holds `offset`, or a later one."""
    first = max(segments.floor_index(offset), 0)
    for index in range(first, len(segments)):
        if segments[index].has_open_file and segments[index].file is records.file:
            return index
    return len(segments) - 1


def _bytes_before(segments: SegmentList, index: int, offset: int, position: int) -> int:
    """The number of bytes from `position` to the batch that holds `offset`."""
    index_of_offset = segments.floor_index(offset)
    if index_of_offset != index:
        return segments[index].size_bytes if index_of_offset > index else 0
    segment: Segment = segments[index]
    found = segment.find(offset)
    return (segment.size_bytes if found is None else found.position) - position
