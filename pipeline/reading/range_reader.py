"""Reads the records of a range of offsets from a directory while a broker may be writing it.

A range is planned by offsets and also read by offsets, segment after segment, because segments may
be rolled, deleted or replaced by cleaned ones in the meantime. The content of an open file does not
change, but a broker may cut its end. A batch is returned if it is complete and its checksum is
correct. So no record is torn or returned twice. If records that existed when the range was planned
are missing, DataLostError is raised, or the reader continues after them.
"""

import logging
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from odradek.pipeline.decoding.batch_table import BatchTable
from odradek.storage.log_reader import LogReader, OpenSegment, SegmentFile
from odradek.storage.topic_partition import TopicPartition

from .committed_batches import CommittedBatches
from .index_lookup import exact_position_range, position_range
from .isolation import has_records
from .partitions import LogDirectories
from .pieces import Piece, read_pieces

_logger = logging.getLogger(__name__)

# While the cleaner replaces segments, an offset may be in no listed segment for an instant.
_MAX_ATTEMPTS = 20
_WAIT_S = 0.05


class DataLostError(Exception):
    """Records of a range no longer exist: they were deleted, or the topic was recreated.

    The lost offsets are [start, resumes_at). `resumes_at` is None if no log follows `start`, or if
    a marker of a transaction is missing after it. All records before `start` were returned.
    """

    def __init__(self, message: str, start: int = -1, resumes_at: int | None = None) -> None:
        super().__init__(message)
        self.start = start
        self.resumes_at = resumes_at


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end) of one partition.

    `committed_only`: without aborted transactions; the range must end before the last stable
    offset. `topic_id` is the directory's when the range was planned; None if it is unknown.
    """

    partition: TopicPartition
    start: int
    end: int
    committed_only: bool = False
    topic_id: bytes | None = None


class Decoder(Protocol):
    """What RangeReader gives batches to: a RecordDecoder, a BatchDecoder, or a job's own."""

    @property
    def only_data_batches(self) -> bool:
        """Whether it gets neither empty batches nor control batches, nor aborted ones.

        It gets aborted ones if uncommitted records are read.
        """

    def decode(
        self, piece: bytes, table: BatchTable, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Decode batches of magic 2, offsets [start, end)."""

    def decode_messages(
        self, data: bytes, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Decode whole messages of magic 0 or 1, offsets [start, end)."""


@dataclass(frozen=True, slots=True)
class RangeReader:
    """Reads one range with a decoder. `wait` sleeps, in seconds, before another attempt.

    With `is_exact`, only the batches of the range are read, so that damage beside it is no error.
    Else it is found by the offset index, and some batches before and after it are read as well.
    """

    directories: LogDirectories
    wanted: OffsetRange
    decoder: Decoder
    verify_crc: bool = True
    fail_on_data_loss: bool = True
    is_exact: bool = False
    wait: Callable[[float], None] = time.sleep

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield what the decoder makes of the batches, in order of offset.

        Raises DataLostError, CorruptRecordError, OSError.
        """
        offset, end = self.wanted.start, self.wanted.end

        def lose_undecided(undecided: int) -> None:
            # `offset` is where the piece begins: none of its batches has been returned yet.
            what = f"offset {undecided} is lost: the marker of its transaction was deleted"
            self._lose(what, offset)

        committed = CommittedBatches(
            self.directories, self.wanted.partition, lose_undecided, verify_crc=self.verify_crc
        )
        done: OpenSegment | None = None
        while offset < end:
            segment = self._next_segment(offset, done)
            if segment is None:
                return
            offset = max(offset, segment.base_offset)
            positions = exact_position_range if self.is_exact else position_range
            position, end_position = positions(segment, offset, end)
            committed.begin_segment(segment, position)
            for piece in read_pieces(segment, position, end_position, verify_crc=self.verify_crc):
                yield from self._decoded(piece, offset, committed)
                offset = max(offset, piece.next_offset)
                if offset >= end:
                    return
            done = segment

    def _decoded(
        self, piece: Piece, offset: int, committed: CommittedBatches
    ) -> Iterator[pa.RecordBatch]:
        if piece.table is None:
            yield from self.decoder.decode_messages(piece.data, offset, self.wanted.end)
            return
        table = piece.table
        within = (table.last_offset >= offset) & (table.base_offset < self.wanted.end)
        table = table.where(within)
        if self.decoder.only_data_batches:
            table = table.where(has_records(table))
            if self.wanted.committed_only:
                table = committed.select(piece, table)
        if table.height:
            yield from self.decoder.decode(piece.data, table, offset, self.wanted.end)

    # -- segments ----------------------------------------------------------------------------------

    def _next_segment(self, offset: int, done: OpenSegment | None) -> OpenSegment | None:
        """Return the segment to read from `offset` on, or None if nothing is left of the range.

        Raises DataLostError.
        """
        for attempt in range(_MAX_ATTEMPTS):
            if attempt:
                self.wait(_WAIT_S)
            try:
                segment = self._segment_at(self._log(), offset, done)
            except FileNotFoundError:
                continue
            if segment is not None:
                return segment
        return self._skip_lost(offset)

    def _log(self) -> LogReader:
        log = self.directories.reader(self.wanted.partition)
        known, found = self.wanted.topic_id, self.directories.topic_id(log.directory)
        if known is not None and found is not None and known != found:
            raise FileNotFoundError(f"{log.directory} now belongs to another topic of that name")
        return log

    def _segment_at(
        self, log: LogReader, offset: int, done: OpenSegment | None
    ) -> OpenSegment | None:
        """Return the segment that contains `offset`, or the next one if `done` is that segment."""
        segments = log.segments()
        following = bisect_right(segments, offset, key=lambda segment: segment.base_offset)
        if not following:
            return None
        opened = log.open(segments[following - 1])
        if done is None or not os.path.sameopenfile(opened.file.fd, done.file.fd):
            return opened
        # All batches of `done` have been read, so the cleaner has removed this offset.
        return log.open(segments[following]) if following < len(segments) else None

    def _skip_lost(self, offset: int) -> OpenSegment | None:
        """Return the segment after the lost records, if loss is allowed. Raises DataLostError."""
        segments: list[SegmentFile] = []
        why = "they are after the end of the log"
        try:
            segments = [each for each in self._log().segments() if each.base_offset > offset]
        except FileNotFoundError as error:
            why = str(error)
        until = min(segments[0].base_offset if segments else self.wanted.end, self.wanted.end)
        if segments:
            why = f"the log begins at {segments[0].base_offset}"
        self._lose(
            f"offsets {offset} to {until - 1} are lost: {why}", offset, until if segments else None
        )
        if not segments or until == self.wanted.end:
            return None
        return self._next_segment(until, None)

    def _lose(self, what: str, start: int, resumes_at: int | None = None) -> None:
        """Raise DataLostError, or log a warning if loss is allowed."""
        lost = f"{self.wanted.partition}: {what}"
        if self.fail_on_data_loss:
            message = f"{lost} (failOnDataLoss=false continues without them)"
            raise DataLostError(message, start, resumes_at)
        _logger.warning("%s", lost)
