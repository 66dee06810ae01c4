"""Leaves out the records of aborted transactions.

A transaction ends with a marker. So the next marker of a producer says whether a record of it is
committed. It may be after the range that is read, and in a later segment.

Kafka's brokers list aborted transactions in `.txnindex` files. They are not read here: a reader
cannot notice that one is missing or incomplete, and would take aborted records for committed ones.
Producer snapshots save reading: they say which transactions are open at the end of a segment, so
that their markers are not there. A snapshot that is missing or damaged says nothing.
"""

import os
from bisect import bisect_right
from collections.abc import Callable
from itertools import zip_longest

import numpy as np

from odradek.pipeline.decoding.batch_table import BatchTable
from odradek.pipeline.decoding.varints import Bools, Ints
from odradek.storage.log_reader import LogReader, OpenSegment
from odradek.storage.topic_partition import TopicPartition

from .markers import SegmentMarkers
from .open_transactions import FirstOffsets, open_transactions_at
from .partitions import LogDirectories
from .pieces import Piece


class CommittedBatches:
    """Selects the batches of a range that are in no aborted transaction, segment by segment.

    The range ends before the last stable offset, so all of its transactions have ended. If a marker
    has been deleted since then, `on_missing` is called with the first offset that it decides. If
    that returns, the batches are left out.
    """

    def __init__(
        self,
        directories: LogDirectories,
        partition: TopicPartition,
        on_missing: Callable[[int], None],
        *,
        verify_crc: bool,
    ) -> None:
        self._directories = directories
        self._partition = partition
        self._on_missing = on_missing
        self._verify_crc = verify_crc
        self._here: SegmentMarkers  # of the segment that is being read
        self._open_at_end: FirstOffsets | None = None  # of this segment; None: not read yet
        self._later: list[SegmentMarkers] = []
        # By producer: the first marker after this segment. None: there is none.
        self._are_aborted_later: dict[int, bool | None] = {}

    def begin_segment(self, segment: OpenSegment, position: int) -> None:
        """Begin to read a segment at `position`, where a batch begins."""
        self._here = self._markers_of(segment, position)
        self._open_at_end = None
        self._later = [
            each for each in self._later if each.segment.base_offset > segment.base_offset
        ]
        self._are_aborted_later = {}

    def select(self, piece: Piece, table: BatchTable) -> BatchTable:
        """Return the committed ones of the data batches in `table`, which are in the piece.

        Raises CorruptRecordError, OSError.
        """
        self._here.add(piece)
        is_transactional = table.is_transactional
        if not is_transactional.any():
            return table
        aborted: Bools = np.zeros(table.height, np.bool_)
        for producer_id in np.unique(table.producer_id[is_transactional]).tolist():
            rows = np.flatnonzero(is_transactional & (table.producer_id == producer_id))
            aborted[rows] = self._are_aborted(producer_id, table.base_offset[rows])
        return table.where(~aborted)

    def _are_aborted(self, producer_id: int, offsets: Ints) -> Bools:
        here, last = self._here, int(offsets[-1])
        while not here.knows_end(producer_id, last):
            if self._is_open_at_end(producer_id, last) or not here.read_on():
                break
        aborted: Bools = np.ones(offsets.size, np.bool_)
        decided = here.are_aborted(producer_id, offsets)
        aborted[: decided.size] = decided
        if decided.size < offsets.size:
            is_aborted = self._is_aborted_later(producer_id, last)
            if is_aborted is None:
                self._on_missing(int(offsets[decided.size]))
            aborted[decided.size :] = is_aborted is not False
        return aborted

    def _is_open_at_end(self, producer_id: int, offset: int) -> bool:
        """Whether the transaction with this offset is known to be open at the segment's end."""
        if self._open_at_end is None:
            self._open_at_end = self._read_open_at_end()
        return self._open_at_end.get(producer_id, offset + 1) <= offset

    def _read_open_at_end(self) -> FirstOffsets:
        base_offset = self._here.segment.base_offset
        try:
            reader = self._directories.reader(self._partition)
            segments = reader.segments()
        except FileNotFoundError:
            return {}
        later = [each.base_offset for each in segments if each.base_offset > base_offset]
        return open_transactions_at(reader.files, reader.directory, later[0]) if later else {}

    # --- later segments

    def _is_aborted_later(self, producer_id: int, offset: int) -> bool | None:
        """Return whether the first marker after this segment is of an abort; None without one."""
        if producer_id not in self._are_aborted_later:
            try:
                found = self._directories.retry(
                    self._partition, lambda reader: self._search(reader, producer_id, offset)
                )
            except FileNotFoundError:
                found = None
            self._are_aborted_later[producer_id] = found
        return self._are_aborted_later[producer_id]

    def _search(self, reader: LogReader, producer_id: int, offset: int) -> bool | None:
        segments = reader.segments()
        # The one with the offset is another file if the cleaner has replaced this segment.
        first = bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1
        segments = segments[max(first, 0) :]
        for segment, end in zip_longest(segments, [each.base_offset for each in segments[1:]]):
            if end is not None:
                open_at_end = open_transactions_at(reader.files, reader.directory, end)
                if open_at_end.get(producer_id, offset + 1) <= offset:
                    continue
            opened = reader.open(segment)
            if not os.path.sameopenfile(opened.file.fd, self._here.segment.file.fd):
                markers = self._markers_of(opened, 0)
                while not markers.knows_end(producer_id, offset) and markers.read_on():
                    pass
                if markers.knows_end(producer_id, offset):
                    return bool(markers.are_aborted(producer_id, np.array([offset]))[0])
        return None

    def _markers_of(self, segment: OpenSegment, position: int) -> SegmentMarkers:
        for known in self._later:
            if os.path.sameopenfile(known.segment.file.fd, segment.file.fd):
                return known
        found = SegmentMarkers(segment, position, verify_crc=self._verify_crc)
        self._later.append(found)
        return found
