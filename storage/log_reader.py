"""Reads a partition's directory without a broker, for the pipeline and the tools.

Nothing is written, and no lock is needed. The broker may be running and may be writing its last
batch; reading ends before a batch that is not complete, and before the zeros at the end of a file
that was preallocated (`preallocate`). Segments can be read by different
processes, because a segment's name has its base offset and a batch is never in two segments.

A running broker rolls segments, deletes them and replaces them by cleaned ones at any time. The
content of an open file stays the same; a name may be gone at once. While the cleaner replaces
segments, there is an instant when the new one is still named `.swap` and the old ones are gone. It
is complete, so it can be read under that name (`reads_swaps`).

A corrupt batch raises CorruptBatchError, because the position of the next batch is not known. If
`on_corrupt` is given, it is called with the error instead, and reading continues with the next
segment.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from odradek.protocol.any_batch import first_offset, read_any_records
from odradek.protocol.batch_header import BatchHeader
from odradek.protocol.record import Record
from odradek.storage.inspect.raw_batch import RawBatch, scan_raw

from .batch_scan import CorruptBatchError, ZerosError, read_batches, scan_headers
from .filenames import FileKind, FileState, parse_segment_file, segment_file
from .files import Files, OpenFile

_LISTINGS = 10  # attempts to list a directory that a broker changes meanwhile

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


class OpenSegment(Struct, frozen=True):
    """An open `.log` file. Only its first `size_bytes` are read.

    A `position` is that of the first byte of a batch.
    """

    files: Files
    file: OpenFile
    base_offset: int
    size_bytes: int

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each whole batch. Raises CorruptBatchError."""
        try:
            yield from scan_headers(self.files, self.file, position, self.size_bytes)
        except ZerosError as error:
            if not self.is_unused_from(error.position):
                raise

    def batches(self, position: int = 0) -> Iterator[StoredBatch]:
        """The whole batches. Raises CorruptBatchError."""
        try:
            for header, data in read_batches(self.files, self.file, position, self.size_bytes):
                yield StoredBatch(header, data)
        except ZerosError as error:
            if not self.is_unused_from(error.position):
                raise

    def is_unused_from(self, position: int) -> bool:
        """Whether the zeros that were read at `position` are the unused end of a preallocated file.

        They are if only zeros follow, and also if a batch is there now: a broker has written it
        since the zeros were read.
        """
        return self.files.is_zero_from(self.file, position) or any(self.pread(16, position))

    def raw_batches(self, position: int = 0) -> Iterator[RawBatch]:
        """All batches of any format, for inspection. Nothing is verified.

        Raises UnreadableError if a batch is so damaged that the position of the next one is not
        known.
        """
        return scan_raw(self.files, self.file, position, self.size_bytes)

    def pread(self, size: int, position: int) -> bytes:
        """Some bytes; fewer at the end of the file."""
        return self.files.pread(self.file, size, position)

    def beside(self, kind: FileKind) -> Path:
        """The path of another file of the segment, which need not exist."""
        return self.file.path.parent / segment_file(self.base_offset, kind)


class LogReader:
    """One partition's records, from its directory. Raises OSError if files cannot be read."""

    def __init__(
        self, directory: Path, files: Files | None = None, *, reads_swaps: bool = False
    ) -> None:
        self.directory = directory
        self.files = files or Files()
        self._states = (FileState.LIVE, FileState.SWAP) if reads_swaps else (FileState.LIVE,)

    def segments(self) -> list[SegmentFile]:
        """The segments, by ascending base offset."""
        for _ in range(_LISTINGS - 1):
            # A broker may rename or remove a listed segment before its size is read.
            with suppress(FileNotFoundError):
                return self._listed()
        return self._listed()

    def _listed(self) -> list[SegmentFile]:
        names: dict[int, str] = {}  # by base offset
        for name in sorted(self.files.list_directory(self.directory)):
            parsed = parse_segment_file(name)
            if parsed is None or parsed.kind is not FileKind.LOG:
                continue
            # Of a segment that has both, `.log` is taken: it sorts before `.log.swap`.
            if parsed.state in self._states:
                names.setdefault(parsed.offset, name)
        paths = [(self.directory / name, offset) for offset, name in sorted(names.items())]
        return [SegmentFile(path, offset, self.files.size(path)) for path, offset in paths]

    def open(self, segment: SegmentFile) -> OpenSegment:
        """Open a segment, to be read up to its current end, which may have grown since the listing.

        Raises OSError if the segment was deleted.
        """
        file = self.files.open(segment.path, read_only=True)
        return OpenSegment(self.files, file, segment.base_offset, file.append_position)

    def end_offset(self) -> int:
        """The offset after the last whole batch; 0 without segments."""
        segments = self.segments()
        if not segments:
            return 0
        end = segments[-1].base_offset
        for _, header in self.open(segments[-1]).headers():
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
            opened = self._open_listed(segment)
        except FileNotFoundError:
            return
        try:
            for position, header in opened.headers():
                if header.last_offset >= start_offset:
                    yield from opened.batches(position)
                    return
        except CorruptBatchError as error:
            if on_corrupt is None:
                raise
            on_corrupt(error)

    def headers(self, segment: SegmentFile) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of each whole batch of one segment. Raises CorruptBatchError.

        Yields nothing if the segment was deleted after it was listed.
        """
        try:
            opened = self._open_listed(segment)
        except FileNotFoundError:
            return
        yield from opened.headers()

    def raw_batches(self, segment: SegmentFile) -> Iterator[RawBatch]:
        """Like `OpenSegment.raw_batches`. Raises OSError if the segment was deleted."""
        return self._open_listed(segment).raw_batches()

    def _open_listed(self, segment: SegmentFile) -> OpenSegment:
        """Open a segment, to be read up to the end that it had when it was listed.

        What a broker has appended since is not read.
        """
        return replace(self.open(segment), size_bytes=segment.size_bytes)

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
