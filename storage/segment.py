"""One segment of a log: a file of batches with its two sparse indexes. Kafka: LogSegment.

The files are opened when they are first needed, so that a start with thousands of partitions opens
none, and a closed segment's can be let go of again (`release_files`).

The offset index maps the last offset of a batch to the batch's position, once per
`index.interval.bytes`. Nothing else protects an index file against bit rot, so an entry is believed
only if the batch at its position ends with its offset; else both indexes are built anew from the
batch headers. The time index maps a timestamp, the largest until then, to the offset of the last
record of the batch that had it; its last entry, added when the segment is closed, is the largest
timestamp of the segment. Both say only where to begin to look; the answer comes from the log.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.batch_header import LOG_OVERHEAD, NO_TIMESTAMP, BatchHeader

from .batch_scan import CorruptBatchError, read_batches, scan_headers
from .filenames import FileKind, FileState, segment_file
from .files import Files, OpenFile
from .index_file import MAX_RELATIVE_OFFSET, CorruptIndexError
from .offset_index import OffsetIndex, OffsetPosition
from .time_index import TimeIndex, TimestampOffset
from .txn_index import AbortedTransaction, TxnIndex

_logger = logging.getLogger(__name__)

FILE_KINDS = (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TXN_INDEX)


class FoundBatch(NamedTuple):
    """The batch that holds an offset, or the first one behind it."""

    position: int
    header: BatchHeader


class WholeBatches(NamedTuple):
    """How many bytes of whole batches lie at a position, and the offset behind them."""

    size_bytes: int
    next_offset: int


class SegmentShape(NamedTuple):
    """The settings that a segment keeps for its life."""

    index_interval_bytes: int
    index_bytes: int
    jitter_ms: int = 0


class RollLimits(NamedTuple):
    """When the active segment is full or old enough."""

    segment_bytes: int
    segment_ms: int


class Segment:
    """Batches from `base_offset` on. Not thread-safe: only syncing leaves the broker's thread."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_file",
        "_first_timestamp_ms",
        "_index_room",
        "_is_appendable",
        "_newest",
        "_offset_index",
        "_shape",
        "_time_index",
        "_txn_index",
        "base_offset",
        "created_ms",
        "directory",
        "files",
        "size_bytes",
        "state",
    )

    def __init__(
        self,
        files: Files,
        directory: Path,
        base_offset: int,
        shape: SegmentShape,
        *,
        size_bytes: int,
        created_ms: int,
        state: FileState = FileState.LIVE,
    ) -> None:
        self.files = files
        self.directory = directory
        self.base_offset = base_offset
        self.size_bytes = size_bytes
        self.created_ms = created_ms
        self.state = state
        self._shape = shape
        self._file: OpenFile | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TxnIndex | None = None
        self._newest: TimestampOffset | None = None
        self._first_timestamp_ms: int | None = None
        self._bytes_since_index_entry = 0
        self._is_appendable = False  # whether the indexes have room for entries
        self._index_room = 0

    @classmethod
    def create(
        cls,
        files: Files,
        directory: Path,
        base_offset: int,
        shape: SegmentShape,
        *,
        now_ms: int,
        preallocate_bytes: int = 0,
        state: FileState = FileState.LIVE,
    ) -> "Segment":
        """A new segment's files, over whatever lay under their names."""
        segment = cls(
            files, directory, base_offset, shape, size_bytes=0, created_ms=now_ms, state=state
        )
        for kind in FILE_KINDS:
            files.remove(segment.path(kind))
        try:
            # The log last, in one step: it is what makes a segment, and indexes without one are
            # nothing.
            segment._open_empty_indexes()
            segment._file = segment._new_log(preallocate_bytes)
        except OSError:
            with suppress(OSError):
                segment.remove()
            raise
        return segment

    def _new_log(self, preallocate_bytes: int) -> OpenFile:
        path = self.path(FileKind.LOG)
        if not preallocate_bytes:
            return self.files.open(path, create=True)
        # Under a name that the next start would remove, until it has its size.
        unfinished = self.path(FileKind.LOG, FileState.DELETED)
        self.files.remove(unfinished)
        file = self.files.open(unfinished, create=True)
        self.files.preallocate(file, preallocate_bytes)
        self.files.rename(unfinished, path)
        file.path = path
        return file

    def __repr__(self) -> str:
        return f"Segment({self.path(FileKind.LOG)}, {self.size_bytes} bytes)"

    # --- files

    def path(self, kind: FileKind, state: FileState | None = None) -> Path:
        """Where a file of this segment lies (or would, in another state)."""
        return self.directory / segment_file(
            self.base_offset, kind, self.state if state is None else state
        )

    @property
    def file(self) -> OpenFile:
        """The open log file. What lies behind `size_bytes` in it is not part of the log."""
        if self._file is None:
            self._file = self.files.open(self.path(FileKind.LOG))
            self._file.append_position = self.size_bytes
        return self._file

    @property
    def offset_index(self) -> OffsetIndex:
        if self._offset_index is None:
            path = self.path(FileKind.OFFSET_INDEX)
            index = OffsetIndex(self.files, path, self.base_offset, self._shape.index_bytes)
            self._offset_index = index
            try:
                self._check(index)
            except BaseException:
                self._offset_index = None  # it is checked when it is needed next
                raise
        return self._offset_index

    @property
    def time_index(self) -> TimeIndex:
        if self._time_index is None:
            path = self.path(FileKind.TIME_INDEX)
            index = TimeIndex(self.files, path, self.base_offset, self._shape.index_bytes)
            self._time_index = index
            try:
                self._check(index)
            except BaseException:
                self._time_index = None  # it is checked when it is needed next
                raise
        return self._time_index

    @property
    def txn_index(self) -> TxnIndex:
        if self._txn_index is None:
            self._txn_index = TxnIndex(self.files, self.path(FileKind.TXN_INDEX))
        return self._txn_index

    def _check(self, index: OffsetIndex | TimeIndex) -> None:
        """Make both indexes anew where one cannot be true."""
        try:
            index.sanity_check()
        except (CorruptIndexError, FileNotFoundError) as error:
            _logger.warning("rebuilding the indexes of %s: %s", self, error)
            self.rebuild_indexes()

    @property
    def has_open_file(self) -> bool:
        return self._file is not None

    @property
    def is_appendable(self) -> bool:
        """Whether it was made for appending to since it was opened, or closed."""
        return self._is_appendable

    def release_files(self) -> None:
        """Let go of a closed segment's files: the next read opens them again."""
        self._file = self._offset_index = self._time_index = None
        self._is_appendable = False

    def rename(self, state: FileState) -> None:
        """Give its files another suffix. An open file stays open.

        Raises OSError: then they have the old one, as far as that could be given back.
        """
        # The log goes last where it goes for good: until then the segment is whole, for what it
        # lacks can be made anew.
        self._offset_index = self._time_index = None
        renamed: list[FileKind] = []
        try:
            for kind in reversed(FILE_KINDS) if state is FileState.DELETED else FILE_KINDS:
                source = self.path(kind)
                if self.files.exists(source):
                    self.files.rename(source, self.path(kind, state))
                    renamed.append(kind)
        except OSError:
            for kind in reversed(renamed):
                with suppress(OSError):
                    self.files.rename(self.path(kind, state), self.path(kind))
            raise
        self.state = state
        self._update_txn_index_path()

    def move_to(self, directory: Path) -> None:
        """Its directory was renamed."""
        self.directory = directory
        self._offset_index = self._time_index = None
        self._update_txn_index_path()

    def _update_txn_index_path(self) -> None:
        if self._txn_index is not None:
            self._txn_index.path = self.path(FileKind.TXN_INDEX)

    def use_copies_in(self, directory: Path) -> None:
        """Its files were copied there, to be read and appended to there from now on."""
        self.directory = directory
        self._file = None
        for index in (self._offset_index, self._time_index):
            if index is not None:
                index.use_copies_in(directory)
        self._update_txn_index_path()

    def remove(self) -> None:
        """Delete its files."""
        self.release_files()
        for path in self.paths():  # the log first
            self.files.remove(path)

    def paths(self) -> list[Path]:
        return [self.path(kind) for kind in FILE_KINDS]

    # --- appending

    def should_roll(
        self, size: int, limits: RollLimits, max_timestamp: int, last_offset: int, now_ms: int
    ) -> bool:
        """Whether a write of `size` bytes belongs into a new segment. Kafka: shouldRoll."""
        if self.size_bytes + size > limits.segment_bytes:
            return True
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        age_ms = self.age_ms(now_ms, max_timestamp)
        if self.size_bytes and age_ms > limits.segment_ms - self._shape.jitter_ms:
            return True
        if not self._is_appendable:
            self._open_indexes_for_append()
        return self._index_room <= 0

    def prepare_append(self) -> None:
        """Read what the first append after an open needs, and make room in the indexes."""
        self._file = self.file
        self._first_timestamp_ms = self.first_timestamp_ms if self.size_bytes else None
        if not self._is_appendable:
            self._open_indexes_for_append()

    def age_ms(self, now_ms: int, max_timestamp: int) -> int:
        """How old the segment would be with a record of that timestamp, by its first batch."""
        first_ms = self.first_timestamp_ms
        return now_ms - self.created_ms if first_ms < 0 else max_timestamp - first_ms

    @property
    def first_timestamp_ms(self) -> int:
        """The largest timestamp of the first batch; -1 where there is none."""
        if self._first_timestamp_ms is None and self.size_bytes:
            with suppress(CorruptBatchError):  # then it is not known, as where it has none
                for _, header in scan_headers(self.files, self.file, 0, self.size_bytes):
                    self._first_timestamp_ms = header.max_timestamp
                    break
        return NO_TIMESTAMP if self._first_timestamp_ms is None else self._first_timestamp_ms

    def modified_ms(self) -> int:
        """When the log file was last written."""
        return self.files.modified_ms(self.path(FileKind.LOG))

    def note_append(self, size: int, last_offset: int, max_timestamp: int) -> None:
        """Keep the books of a batch that was written at the end of the file."""
        newest = self.newest
        if max_timestamp > newest.timestamp_ms:
            self._newest = newest = TimestampOffset(max_timestamp, last_offset)
        if self._bytes_since_index_entry > self._shape.index_interval_bytes:
            self._append_to_indexes(last_offset, newest)
            self._bytes_since_index_entry = 0
        if not self.size_bytes:
            self._first_timestamp_ms = max_timestamp
        self.size_bytes += size
        self._bytes_since_index_entry += size

    def _append_to_indexes(self, last_offset: int, newest: TimestampOffset) -> None:
        # Full only where segment.index.bytes was lowered and a rebuild meets an older segment: then
        # the rest is found by scanning.
        if self._index_room > 0:
            self.offset_index.append(last_offset, self.size_bytes)
            self.time_index.maybe_append(newest.timestamp_ms, newest.offset)
            self._index_room -= 1
            if self.offset_index.entries == 1:
                # Kafka's dump tool takes zeros for the end of an index, but not as its first entry.
                # What cannot be written now is written, or fails, with the next flush.
                with suppress(OSError):
                    self.offset_index.write_out()
                    self.time_index.write_out()

    def _open_indexes_for_append(self) -> None:
        """Make room for entries: an index is as long as it may become while it is appended to."""
        self.offset_index.become_active()
        self.time_index.become_active()
        # Nothing may be left to read once a batch is written.
        self._newest = self.newest
        self.aborted()
        self._update_index_room()

    def seal(self) -> None:
        """End the segment's life as the active one: the last time entry, files cut to size."""
        self.txn_index.write_out()
        self.close_indexes()
        if self.files.size(self.path(FileKind.LOG)) != self.size_bytes:
            self.files.truncate(self.file, self.size_bytes)

    def close_indexes(self) -> None:
        """Add the last time entry, and cut the index files to their entries."""
        newest = self.newest
        self._index_room = 0  # where this fails half way, the next append tries to roll again
        if newest.timestamp_ms > self.time_index.last_entry.timestamp_ms:
            self.time_index.maybe_append(newest.timestamp_ms, newest.offset, closing=True)
        self.offset_index.trim()
        self.time_index.trim()
        self._is_appendable = False

    def sync_targets(self) -> list[OpenFile]:
        """The open files to sync, once the entries that are in memory are in the files."""
        indexes = [each for each in (self.offset_index, self.time_index) if each.is_unsynced]
        targets = [self.file, *(index.write_out() for index in indexes)]
        self.txn_index.write_out()
        for index in indexes:
            index.note_sync()
        return targets

    # --- repair

    def reset(self) -> None:
        """Forget all batches (the file keeps its bytes): each is noted again by `note_append`."""
        self._file = self.file  # opened while the size is known, behind which the next append goes
        self.size_bytes = self._bytes_since_index_entry = 0
        self._newest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        self._first_timestamp_ms = None
        self._open_empty_indexes()

    def _open_empty_indexes(self) -> None:
        files, base, size = self.files, self.base_offset, self._shape.index_bytes
        offsets, times = self.path(FileKind.OFFSET_INDEX), self.path(FileKind.TIME_INDEX)
        self._offset_index = OffsetIndex.create(files, offsets, base, size)
        self._time_index = TimeIndex.create(files, times, base, size)
        self._update_index_room()

    def _update_index_room(self) -> None:
        # An entry of the time index is added at most when one of the offset index is; its last slot
        # is for closing the segment.
        offsets, times = self.offset_index, self.time_index
        self._index_room = min(
            offsets.max_entries - offsets.entries, times.max_entries - times.entries - 1
        )
        self._is_appendable = True

    def rebuild_indexes(self) -> None:
        """Make both indexes anew from the batch headers. What is corrupt stays, without entries.

        Waits for the disk wherever it runs: half an index would be worse.
        """
        with self.files.allow_waiting():
            self._rebuild_indexes()

    def _rebuild_indexes(self) -> None:
        size, was_appendable = self.size_bytes, self._is_appendable
        try:
            self.reset()
            for position, header in scan_headers(self.files, self.file, 0, size):
                if not 0 <= header.last_offset - self.base_offset <= MAX_RELATIVE_OFFSET:
                    reason = f"offset {header.last_offset} is too far from {self.base_offset}"
                    raise CorruptBatchError(self.file, position, reason)
                self.note_append(header.size_bytes, header.last_offset, header.max_timestamp)
        except (CorruptBatchError, ValueError) as error:
            _logger.warning("the index of %s ends early: %s", self, error)
        except OSError:
            # Half made, they are looked at as any that are found.
            self._offset_index = self._time_index = self._newest = self._first_timestamp_ms = None
            self._is_appendable = False
            raise
        finally:
            self.size_bytes = size
        if not was_appendable:
            self.close_indexes()

    def truncate_to(self, offset: int) -> int:
        """Drop the batch that holds `offset` and all behind it; returns how many bytes went."""
        found = self.find(offset)
        if found is None:
            return 0
        cut = self.size_bytes - found.position
        self.files.truncate(self.file, found.position)
        self.size_bytes = found.position
        self.rebuild_indexes()
        self.txn_index.truncate_to(offset)
        return cut

    # --- reading

    def find(self, offset: int) -> FoundBatch | None:
        """The batch that holds `offset`, or the first one behind it; None behind the last."""
        for position, header in self.headers_from(offset):
            if header.base_offset + header.last_offset_delta >= offset:
                return FoundBatch(position, header)
        return None

    def check_end(self, offset: int) -> None:
        """Whether `find` has met the end of the segment, and not a batch that is cut or overlong.

        Raises CorruptBatchError.
        """
        end = self._start_of_scan(offset)
        for position, header in scan_headers(self.files, self.file, end, self.size_bytes):
            end = position + header.size_bytes
        if end != self.size_bytes:
            raise CorruptBatchError(self.file, end, "no whole batch begins here")

    def batch_at(self, position: int) -> FoundBatch:
        """The batch that begins there. Raises CorruptBatchError."""
        for at, header in scan_headers(self.files, self.file, position, self.size_bytes):
            return FoundBatch(at, header)
        raise CorruptBatchError(self.file, position, "no batch begins here")

    def headers_from(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers, from a batch at or before `offset` on."""
        start = self._start_of_scan(offset)
        return scan_headers(self.files, self.file, start, self.size_bytes)

    def headers_near(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers, from a batch that begins at or before `position` on."""
        entry = self.offset_index.before_position(position)
        if not self._is_valid_offset_entry(entry):
            self._rebuild_for(entry)
            entry = self.offset_index.before_position(position)
        return scan_headers(self.files, self.file, entry.position, self.size_bytes)

    def _start_of_scan(self, offset: int) -> int:
        """Where the index says to begin, if the batch there is the one it means."""
        entry = self.offset_index.lookup(offset)
        if self._is_valid_offset_entry(entry):
            return entry.position
        self._rebuild_for(entry)
        return self.offset_index.lookup(offset).position

    def _rebuild_for(self, entry: OffsetPosition | TimestampOffset) -> None:
        _logger.warning("rebuilding the indexes of %s: %s is not true", self, entry)
        self.rebuild_indexes()

    def _is_valid_offset_entry(self, entry: OffsetPosition) -> bool:
        """Whether the batch that an offset entry means is there."""
        return entry.position == 0 or (
            0 < entry.position < self.size_bytes and self._ends_with(entry.position, entry.offset)
        )

    def _ends_with(self, position: int, offset: int) -> bool:
        """Whether a batch at `position` ends with `offset`."""
        try:
            for _, header in scan_headers(self.files, self.file, position, self.size_bytes):
                return header.last_offset == offset
        except CorruptBatchError:
            pass
        return False

    def whole_batches(self, found: FoundBatch, max_bytes: int) -> WholeBatches:
        """As many whole batches from there as fit, at most; fewer where the index tells sooner.

        Nothing where the first one alone is larger.
        """
        entry = self.offset_index.before_position(found.position + max_bytes)
        if entry.position > found.position:
            for _, header in scan_headers(self.files, self.file, entry.position, self.size_bytes):
                if header.last_offset == entry.offset:
                    return WholeBatches(entry.position - found.position, header.base_offset)
                break
        size, next_offset = 0, found.header.base_offset
        for position, header in scan_headers(
            self.files, self.file, found.position, self.size_bytes
        ):
            end = position + header.batch_length + LOG_OVERHEAD - found.position
            if end > max_bytes:
                break
            size, next_offset = end, header.next_offset
        return WholeBatches(size, next_offset)

    def tail(self) -> WholeBatches:
        """Up to where the file holds whole batches, and the offset behind the last.

        Raises CorruptBatchError, where a segment is not what its clean close left.
        """
        size, next_offset = 0, self.base_offset
        for position, header in self.headers_from(self.offset_index.last_offset):
            size, next_offset = position + header.size_bytes, header.next_offset
        return WholeBatches(size, next_offset)

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Header and bytes of whole batches, checked, from the one that holds `offset` on."""
        found = self.find(offset)
        if found is not None:
            yield from read_batches(self.files, self.file, found.position, self.size_bytes)

    def aborted(self) -> Sequence[AbortedTransaction]:
        """The transactions whose markers lie in this segment, in their order."""
        return self.txn_index.entries()

    # --- timestamps

    @property
    def newest(self) -> TimestampOffset:
        """The largest timestamp (-1: none) and the last offset of the batch that had it first."""
        if self._newest is None:
            entry = self.time_index.last_entry
            if not self._is_valid_time_entry(entry):
                self._rebuild_for(entry)
            else:
                self._newest = entry
            assert self._newest is not None
        return self._newest

    def _is_valid_time_entry(self, entry: TimestampOffset) -> bool:
        """Whether the batch that a time entry means has that timestamp."""
        if entry.timestamp_ms < 0:
            # Messages of magic 0 have none; what was appended behind them does.
            return self.first_timestamp_ms < 0 and self._last_timestamp_ms() < 0
        try:
            found = self.find(entry.offset)
        except CorruptBatchError:
            return False
        return (
            found is not None
            and found.header.last_offset == entry.offset
            and found.header.max_timestamp == entry.timestamp_ms
        )

    def _last_timestamp_ms(self) -> int:
        """The largest timestamp of the last batch; -1 where there is none."""
        last_ms = NO_TIMESTAMP
        for _, header in self.headers_from(self.offset_index.last_offset):
            last_ms = header.max_timestamp
        return last_ms

    def largest_timestamp_ms(self) -> int:
        """Of a record; where records have none, when the file was last written."""
        newest_ms = self.newest.timestamp_ms
        return newest_ms if newest_ms >= 0 else self.files.modified_ms(self.path(FileKind.LOG))

    def headers_from_time(
        self, timestamp_ms: int, start_offset: int
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers; before them lies no record from `start_offset` on that is not
        older than `timestamp_ms`.
        """
        entry = self.time_index.lookup(timestamp_ms)
        if entry.timestamp_ms >= 0 and not self._is_valid_time_entry(entry):
            self._rebuild_for(entry)
            entry = self.time_index.lookup(timestamp_ms)
        # No entry has a negative timestamp but one that is not true.
        known = start_offset if entry.timestamp_ms < 0 else max(entry.offset, start_offset)
        return self.headers_from(known)
