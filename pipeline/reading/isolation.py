"""Finds the last stable offset: before it, all transactions have ended.

A consumer with `isolation.level=read_committed` sees the records before it that are in no aborted
transaction (committed_batches.py).
"""

from itertools import zip_longest

import numpy as np

from odradek.pipeline.decoding.batch_table import BatchTable
from odradek.pipeline.decoding.varints import Bools
from odradek.storage.log_reader import LogReader, OpenSegment
from odradek.storage.topic_partition import TopicPartition

from .index_lookup import position_before
from .markers import markers_in
from .open_transactions import NONE_OPEN, OpenTransactions, newest_open_transactions
from .partitions import LogDirectories
from .pieces import read_pieces


def last_stable_offset(directories: LogDirectories, partition: TopicPartition, end: int) -> int:
    """Return where the oldest transaction begins that is open at `end`; `end` if none is.

    Raises FileNotFoundError, CorruptRecordError.
    """
    return open_transactions(directories, partition, end).last_stable_offset


def open_transactions(
    directories: LogDirectories,
    partition: TopicPartition,
    end: int,
    known: OpenTransactions = NONE_OPEN,
) -> OpenTransactions:
    """Return the transactions that are open at `end`; what is `known` is not read again.

    Raises FileNotFoundError, CorruptRecordError.
    """
    return directories.retry(partition, lambda reader: _open_transactions(reader, end, known))


def _open_transactions(reader: LogReader, end: int, known: OpenTransactions) -> OpenTransactions:
    newest = newest_open_transactions(reader.files, reader.directory, end)
    start, first_offsets = max(newest, known, key=lambda each: each.offset)
    begun = dict(first_offsets)
    segments = reader.segments()
    for segment, following in zip_longest(segments, segments[1:]):
        is_before = following is not None and following.base_offset <= start
        if not is_before and segment.base_offset < end:
            _follow(begun, reader.open(segment), start, end)
    return OpenTransactions(max(start, end), begun)


def _follow(begun: dict[int, int], segment: OpenSegment, start: int, end: int) -> None:
    """Update the first offsets of open transactions by the batches in [start, end)."""
    position = position_before(segment, start)
    for piece in read_pieces(segment, position, segment.size_bytes, verify_crc=False):
        if piece.table is not None:
            table = piece.table.where(
                piece.table.is_transactional
                & (piece.table.last_offset >= start)
                & (piece.table.base_offset < end)
            )
            _follow_table(begun, piece.data, table)
        if piece.next_offset >= end:
            return


def _follow_table(begun: dict[int, int], data: bytes, table: BatchTable) -> None:
    markers = markers_in(data, table)
    for producer_id in np.unique(table.producer_id).tolist():
        ends = markers.offset[markers.producer_id == producer_id]
        if ends.size:
            begun.pop(producer_id, None)
        is_unended = table.base_offset > (ends[-1] if ends.size else -1)
        rows = is_unended & (table.producer_id == producer_id) & has_records(table)
        if rows.any():
            begun.setdefault(producer_id, int(table.base_offset[rows][0]))


def has_records(table: BatchTable) -> Bools:
    """Whether each batch has records that are not markers. The cleaner leaves empty batches."""
    found: Bools = ~table.is_control & (table.record_count > 0)
    return found
