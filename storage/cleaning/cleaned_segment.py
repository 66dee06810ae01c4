"""Writes a new segment as `.cleaned` files, which are not part of the log until a swap.

Batches are collected up to the size of the I/O buffer and written with one call. A finished segment
is synced, and its files get the modification time of the segments that they replace: retention and
lookups by time use it for records without timestamps.

Kafka: UnifiedLog.createNewCleanedSegment, and the end of Cleaner.cleanSegments.
"""

from collections.abc import Sequence
from pathlib import Path

from odradek.protocol.batch_header import NO_TIMESTAMP
from odradek.protocol.compression import Buffer
from odradek.storage.filenames import FileKind, FileState
from odradek.storage.files import MAX_BUFFERS
from odradek.storage.index_file import MAX_RELATIVE_OFFSET
from odradek.storage.segment import Segment
from odradek.storage.segment_settings import SegmentSettings
from odradek.storage.txn_index import AbortedTransaction, rewrite_aborted

from .input import CleanerInput
from .task import CleanedSegment


class SegmentOverflowError(Exception):
    """An offset is more than 2**31-1 above its segment's base offset: the segment must be split."""

    def __init__(self, base_offset: int, last_offset: int) -> None:
        super().__init__(base_offset, last_offset)  # both: pickle passes them to __init__
        self.base_offset = base_offset
        self.last_offset = last_offset

    def __str__(self) -> str:
        return f"offset {self.last_offset} is too far above {self.base_offset}"


class CleanedSegmentWriter:
    """Writes one segment's `.cleaned` files; replaces existing ones."""

    def __init__(
        self,
        source: CleanerInput,
        directory: Path,
        base_offset: int,
        settings: SegmentSettings,
    ) -> None:
        """`source`: the reader, whose files, buffer size and `on_io` are used for writing too."""
        self.base_offset = base_offset
        self._files = source.files
        self._buffer_bytes = source.buffer_bytes
        self._on_io = source.on_io
        self._pieces: list[Buffer] = []
        self._notes: list[tuple[int, int, int]] = []
        self._pending_bytes = 0
        self._segment = Segment.create(
            self._files,
            directory,
            base_offset,
            settings,
            now_ms=NO_TIMESTAMP,
            state=FileState.CLEANED,
        )

    def add(self, batch: Buffer, last_offset: int, max_timestamp: int) -> None:
        """Add one whole batch. Raises SegmentOverflowError."""
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            raise SegmentOverflowError(self.base_offset, last_offset)
        size = len(batch)
        self._pieces.append(batch)
        self._notes.append((size, last_offset, max_timestamp))
        self._pending_bytes += size
        if self._pending_bytes >= self._buffer_bytes or len(self._pieces) >= MAX_BUFFERS:
            self._write()

    def _write(self) -> None:
        if self._pieces:
            self._files.append(self._segment.file, self._pieces)
            for note in self._notes:
                self._segment.note_append(*note)
            self._on_io(self._pending_bytes)
            self._pieces, self._notes, self._pending_bytes = [], [], 0

    def finish(self, aborted: Sequence[AbortedTransaction], modified_ms: int) -> CleanedSegment:
        """Write the rest and sync all files. Then the segment may be swapped in."""
        segment, files = self._segment, self._files
        self._write()
        segment.close_indexes()
        rewrite_aborted(files, segment.path(FileKind.TXN_INDEX), aborted)  # and sync it
        for kind in (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX):
            file = segment.file if kind is FileKind.LOG else files.open(segment.path(kind))
            files.set_modified_ms(file.path, modified_ms)
            files.fsync(file)
        files.fsync_directory(segment.directory)
        return CleanedSegment(segment.base_offset, segment.size_bytes)

    def discard(self) -> None:
        """Remove the files."""
        self._segment.remove()
