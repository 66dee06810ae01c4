"""Reads a partition's directory without a broker, for the pipeline and the tools.

Only `.log` files are read, nothing is written, and no lock is needed. The broker may be running and
may be writing its last batch; reading ends before a batch that is not complete. Segments can be
read by different processes, because a segment's name has its base offset and a batch is never in
two segments.

A corrupt batch raises CorruptBatchError, because the position of the next batch is not known. If
`on_corrupt` is given, it is called with the error instead, and reading continues with the next
segment.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from odradek.protocol.any_batch import first_offset, read_any_records
from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.record import Record

from .batch_scan import CorruptBatchError, read_batches, scan_headers
from .filenames import FileKind, live_offsets, segment_file
from .files import Files, OpenFile
from .inspect.raw_batch import RawBatch, scan_raw

OnCorrupt = Callable[[CorruptBatchError], None]


class StoredBatch(NamedTuple):
    """A whole batch, its CRC verified, or a message of magic 0 or 1: see protocol/any_batch.py.

    `data` begins with the header.
    """

    header: BatchHeader
    data: memoryview

    def records(self) -> Iterator[Record]:
        """Its records, decompressed. Raises CorruptRecordError."""
        return read_any_records(self.data, self.header)

    @property
    def base_offset(self) -> int:
        """Of its first record; a compressed old message is unpacked. Raises CorruptRecordError."""
        return first_offset(self.data, self.header)


class SegmentFile(Struct, frozen=True):
    """One `.log` file of a partition, as it was when the directory was listed."""

    path: Path
    base_offset: int
    size_bytes: int


class LogReader:
    """One partition's records, from its directory. Raises OSError if files cannot be read."""

    def __init__(self, directory: Path, files: Files | None = None) -> None:
        self.directory = directory
        self._files = files or Files()

    def segments(self) -> list[SegmentFile]:
        """The segments, by ascending base offset."""
        segments = []
        for base_offset in live_offsets(self._files.list_directory(self.directory), FileKind.LOG):
            path = self.directory / segment_file(base_offset, FileKind.LOG)
            segments.append(SegmentFile(path, base_offset, self._files.size(path)))
        return segments

    def end_offset(self) -> int:
        """The offset after the last whole batch; 0 without segments."""
        segments = self.segments()
        if not segments:
            return 0
        end = segments[-1].base_offset
        file = self._files.open(segments[-1].path, read_only=True)
        for _, header in scan_headers(self._files, file, 0, segments[-1].size_bytes):
            end = header.next_offset
        return end

    def batches(
        self,
        start_offset: int = 0,
        end_offset: int | None = None,
        *,
        on_corrupt: OnCorrupt | None = None,
    ) -> Iterator[StoredBatch]:
        """Batches that hold an offset in [start, end), including control batches."""
        segments = self.segments()
        for index, segment in enumerate(segments):
            following = segments[index + 1].base_offset if index + 1 < len(segments) else None
            if following is not None and following <= start_offset:
                continue
            if end_offset is not None and segment.base_offset >= end_offset:
                return
            for batch in self.segment_batches(segment, start_offset, on_corrupt=on_corrupt):
                if end_offset is not None and batch.header.base_offset >= end_offset:
                    # For a compressed old message this is the last offset; its first may be before.
                    if batch.base_offset < end_offset:
                        yield batch
                    return
                yield batch

    def segment_batches(
        self, segment: SegmentFile, start_offset: int = 0, *, on_corrupt: OnCorrupt | None = None
    ) -> Iterator[StoredBatch]:
        """The batches of one segment that do not end before `start_offset`.

        Yields nothing if the segment was deleted after it was listed.
        """
        try:
            file = self._files.open(segment.path, read_only=True)
        except FileNotFoundError:
            return
        try:
            start = self._position_of(file, segment, start_offset)
            for header, data in read_batches(self._files, file, start, segment.size_bytes):
                yield StoredBatch(header, data)
        except CorruptBatchError as error:
            if on_corrupt is None:
                raise
            on_corrupt(error)

    def headers(self, segment: SegmentFile) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each whole batch of one segment. Raises CorruptBatchError.

        Yields nothing if the segment was deleted after it was listed.
        """
        try:
            file = self._files.open(segment.path, read_only=True)
        except FileNotFoundError:
            return
        yield from scan_headers(self._files, file, 0, segment.size_bytes)

    def raw_batches(self, segment: SegmentFile) -> Iterator[RawBatch]:
        """All batches of one segment, of any format, for inspection. Nothing is verified.

        Raises UnreadableError if a batch is so damaged that the position of the next one is not
        known.
        """
        file = self._files.open(segment.path, read_only=True)
        return scan_raw(self._files, file, 0, segment.size_bytes)

    def _position_of(self, file: OpenFile, segment: SegmentFile, offset: int) -> int:
        """The position of the first batch that does not end before `offset`."""
        for position, header in scan_headers(self._files, file, 0, segment.size_bytes):
            if header.last_offset >= offset:
                return position
        return segment.size_bytes

    def records(
        self,
        start_offset: int = 0,
        end_offset: int | None = None,
        *,
        on_corrupt: OnCorrupt | None = None,
    ) -> Iterator[Record]:
        """The records in [start, end), without transaction markers."""
        for batch in self.batches(start_offset, end_offset, on_corrupt=on_corrupt):
            if batch.header.is_control:
                continue
            for record in batch.records():
                if record.offset >= start_offset and (
                    end_offset is None or record.offset < end_offset
                ):
                    yield record
