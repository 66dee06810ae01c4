"""The records of a range of offsets, from a directory in which a broker may be at work.

What was planned by offsets is looked up by offsets when it is read, segment after segment, for in
the meantime segments may have been rolled, deleted, or replaced by cleaned ones. A file that is
open stays what it was, and a batch is taken where it lies whole and its checksum is right. So no
record comes torn or twice; where records have gone that were there when the range was planned,
DataLostError says so, or the reader goes on behind them.
"""

import logging
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from odradek.pipeline.decoding.batch_table import BatchTable

from .isolation import Aborted, without_aborted
from .partitions import LogDirectories, TopicPartition
from .pieces import Piece, read_pieces
from .segments import OpenSegment, SegmentPath, list_segments, open_segment, span_of

_logger = logging.getLogger(__name__)

# While segments are replaced none may cover an offset; that is over in an instant.
_LOOKS = 20
_WAIT_S = 0.05


class DataLostError(Exception):
    """Records of a range are not there any more: deleted, or the whole topic made anew.

    They are those from `start` to before `resumes_at`; None where the log is not there behind them.
    """

    def __init__(self, message: str, start: int = -1, resumes_at: int | None = None) -> None:
        super().__init__(message)
        self.start = start
        self.resumes_at = resumes_at


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets [start, end) of one partition, and which transactions in it were aborted.

    `topic_id` is that of the directory when the range was planned; None where it is not known.
    """

    partition: TopicPartition
    start: int
    end: int
    aborted: tuple[Aborted, ...] = ()
    topic_id: bytes | None = None


class Decoder(Protocol):
    """What is made of batches: RecordDecoder, BatchDecoder, or what a job makes of them."""

    @property
    def of_data(self) -> bool:
        """Whether control batches and aborted ones are kept from it."""

    def decode(
        self, piece: bytes, table: BatchTable, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Of batches of magic 2, for offsets in [start, end)."""

    def decode_messages(
        self, data: bytes, start_offset: int, end_offset: int
    ) -> Iterator[pa.RecordBatch]:
        """Of whole messages of magic 0 or 1."""


@dataclass(frozen=True, slots=True)
class RangeReader:
    """Reads one range, for the columns of `decoder`. `wait` sleeps between two looks.

    A decoder that is not `of_data` is given control batches and aborted ones too.
    """

    directories: LogDirectories
    wanted: OffsetRange
    decoder: Decoder
    verify_crc: bool = True
    fail_on_data_loss: bool = True
    wait: Callable[[float], None] = time.sleep

    def read(self) -> Iterator[pa.RecordBatch]:
        """The records in the order of their offsets.

        Raises DataLostError, CorruptRecordError, OSError.
        """
        at, end = self.wanted.start, self.wanted.end
        done: OpenSegment | None = None
        while at < end:
            segment = self._next_segment(at, done)
            if segment is None:
                return
            at = max(at, segment.base_offset)
            for piece in self._pieces(segment, at):
                yield from self._decoded(piece, at)
                at = max(at, piece.next_offset)
                if at >= end:
                    return
            done = segment

    def _pieces(self, segment: OpenSegment, at: int) -> Iterator[Piece]:
        files = self.directories.files
        position, end_position = span_of(files, segment, at, self.wanted.end)
        return read_pieces(files, segment, position, end_position, verify_crc=self.verify_crc)

    def _decoded(self, piece: Piece, at: int) -> Iterator[pa.RecordBatch]:
        if piece.table is None:
            yield from self.decoder.decode_messages(piece.data, at, self.wanted.end)
            return
        table = piece.table
        within = (table.last_offset >= at) & (table.base_offset < self.wanted.end)
        table = table.where(within)
        if self.decoder.of_data:
            table = table.where(~table.is_control & (table.record_count > 0))
            table = without_aborted(table, self.wanted.aborted)
        if table.height:
            yield from self.decoder.decode(piece.data, table, at, self.wanted.end)

    # -- segments ----------------------------------------------------------------------------------

    def _next_segment(self, at: int, done: OpenSegment | None) -> OpenSegment | None:
        """The segment to go on with at offset `at`; None where nothing is left of the range.

        Raises DataLostError.
        """
        for look in range(_LOOKS):
            if look:
                self.wait(_WAIT_S)
            try:
                segments = list_segments(self.directories.files, self._directory())
                segment = self._covering(segments, at, done)
            except FileNotFoundError:
                continue
            if segment is not None:
                return segment
        return self._behind_the_loss(at)

    def _directory(self) -> Path:
        directory = self.directories.required(self.wanted.partition)
        known, found = self.wanted.topic_id, self.directories.topic_id(directory)
        if known is not None and found is not None and known != found:
            raise FileNotFoundError(f"{directory} belongs to another topic of that name now")
        return directory

    def _covering(
        self, segments: list[SegmentPath], at: int, done: OpenSegment | None
    ) -> OpenSegment | None:
        """The segment that `at` lies in, or the one behind it where that has been read already."""
        files = self.directories.files
        behind = bisect_right(segments, at, key=lambda segment: segment.base_offset)
        if not behind:
            return None
        opened = open_segment(files, segments[behind - 1])
        if done is None or not os.path.sameopenfile(opened.file.fd, done.file.fd):
            return opened
        # Offsets that the cleaner has left out may lie between the two.
        return open_segment(files, segments[behind]) if behind < len(segments) else None

    def _behind_the_loss(self, at: int) -> OpenSegment | None:
        """Where to go on, if that is wanted. Raises DataLostError."""
        segments: list[SegmentPath] = []
        why = "the log ends before"
        try:
            listed = list_segments(self.directories.files, self._directory())
            segments = [segment for segment in listed if segment.base_offset > at]
        except FileNotFoundError as error:
            why = str(error)
        until = min(segments[0].base_offset if segments else self.wanted.end, self.wanted.end)
        if segments:
            why = f"the log begins at {segments[0].base_offset}"
        lost = f"{self.wanted.partition}: offsets {at} to {until - 1} are gone: {why}"
        if self.fail_on_data_loss:
            raise DataLostError(
                f"{lost} (failOnDataLoss=false goes on without them)",
                at,
                until if segments else None,
            )
        _logger.warning("%s", lost)
        if not segments or until == self.wanted.end:
            return None
        return open_segment(self.directories.files, segments[0])
