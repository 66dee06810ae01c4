"""One segment of a log: a file of batches and its indexes. Kafka: LogSegment.

The files are opened when they are first needed, so a start with thousands of partitions opens none.
The files of a closed segment can be released again (`release_files`).

The offset index maps the last offset of a batch to the batch's position, once per
`index.interval.bytes`. The time index maps the largest timestamp so far to the last offset of the
batch that has it. Its last entry, added when the segment is closed, is the largest timestamp of the
segment.

Both indexes only say where a search begins; the result is read from the log file. Index files have
no checksum. So an entry is used only if the batch at its position ends with its offset (or has its
timestamp). Otherwise both indexes are rebuilt from the batch headers. If one of these is damaged, a
rebuilt index would end there: then the indexes stay, and the next earlier entry is used.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from odradek.protocol.batch_header import LOG_OVERHEAD, NO_TIMESTAMP, BatchHeader
from odradek.protocol.compression import Buffer

from .batch_scan import CorruptBatchError, header_at, read_batches, scan_headers
from .filenames import FileKind, FileState, segment_file
from .files import Files, OpenFile
from .index_file import MAX_RELATIVE_OFFSET, CorruptIndexError
from .offset_index import OffsetIndex, OffsetPosition
from .segment_settings import SegmentSettings
from .time_index import TimeIndex, TimestampOffset
from .txn_index import AbortedTransaction, TxnIndex

_logger = logging.getLogger(__name__)
_ENTRIES_AT_ONCE = 128  # are written to an index of the active segment

FILE_KINDS = (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TXN_INDEX)
# A missing offset or time index is rebuilt; a missing transaction index is not noticed. So a kill
# between two renames must not leave a log file whose transaction index is `.deleted`.
_RENAME_ORDER = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.LOG, FileKind.TXN_INDEX)


class FoundBatch(NamedTuple):
    """The batch that holds an offset, or the first one after it."""

    position: int
    header: BatchHeader


class WholeBatches(NamedTuple):
    """The size of whole batches at a position, and the offset after them."""

    size_bytes: int
    next_offset: int


class RollLimits(Struct, frozen=True, gc=False):
    """The size and age at which the active segment is rolled."""

    segment_bytes: int
    segment_ms: int


class Segment:
    """Batches from `base_offset` on. Not thread-safe: other threads may only sync its files."""

    __slots__ = (
        "_bytes_since_index_entry",
        "_file",
        "_first_timestamp_ms",
        "_has_damage",
        "_index_room",
        "_is_appendable",
        "_newest",
        "_offset_index",
        "_settings",
        "_time_index",
        "_txn_index",
        "base_offset",
        "created_ms",
        "directory",
        "files",
        "is_reported_as_future",
        "size_bytes",
        "state",
    )

    def __init__(
        self,
        files: Files,
        directory: Path,
        base_offset: int,
        settings: SegmentSettings,
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
        self.is_reported_as_future = False  # retention warns once of a record from the future
        self._settings = settings
        self._file: OpenFile | None = None
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TxnIndex | None = None
        self._newest: TimestampOffset | None = None
        self._first_timestamp_ms: int | None = None
        self._bytes_since_index_entry = 0
        self._has_damage = False  # a batch header was damaged when the indexes were to be rebuilt
        self._is_appendable = False  # whether the index files have their full size
        self._index_room = 0  # entries that still fit into both indexes; then it is closed

    @classmethod
    def create(
        cls,
        files: Files,
        directory: Path,
        base_offset: int,
        settings: SegmentSettings,
        *,
        now_ms: int,
        preallocate_bytes: int = 0,
        state: FileState = FileState.LIVE,
    ) -> "Segment":
        """Create a segment's files, replacing existing ones with their names."""
        segment = cls(
            files, directory, base_offset, settings, size_bytes=0, created_ms=now_ms, state=state
        )
        for kind in FILE_KINDS:
            files.remove(segment.path(kind))
        # Loaded, because no read may fail after a marker was written.
        segment._txn_index = TxnIndex(files, segment.path(FileKind.TXN_INDEX), is_new=True)
        try:
            # The log file last, in one step: a segment exists if its log file does, and indexes
            # without one are ignored.
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
        # Under a name that the next start removes, until the file has its full size.
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
        """The path of a file of this segment (in another state: its name in that state)."""
        return self.directory / segment_file(
            self.base_offset, kind, self.state if state is None else state
        )

    @property
    def file(self) -> OpenFile:
        """The open log file. Bytes after `size_bytes` in it are not part of the log."""
        file = self._file  # another thread may release it: see release_files
        if file is None:
            file = self.files.open(self.path(FileKind.LOG))
            file.append_position = self.size_bytes
            self._file = file
            self.files.opened_by_segments += 1
        return file

    @property
    def offset_index(self) -> OffsetIndex:
        index = self._offset_index
        if index is None:
            path = self.path(FileKind.OFFSET_INDEX)
            index = OffsetIndex(self.files, path, self.base_offset, self._settings.index_bytes)
            self._check(index)  # which sets both indexes if it rebuilds them
            self._offset_index = index = self._offset_index or index
        return index

    @property
    def time_index(self) -> TimeIndex:
        index = self._time_index
        if index is None:
            path = self.path(FileKind.TIME_INDEX)
            index = TimeIndex(self.files, path, self.base_offset, self._settings.index_bytes)
            self._check(index)  # which sets both indexes if it rebuilds them
            self._time_index = index = self._time_index or index
        return index

    @property
    def txn_index(self) -> TxnIndex:
        if self._txn_index is None:
            self._txn_index = TxnIndex(self.files, self.path(FileKind.TXN_INDEX))
        return self._txn_index

    def _check(self, index: OffsetIndex | TimeIndex) -> None:
        """Rebuild both indexes if this one is missing or invalid."""
        try:
            index.sanity_check()
        except (CorruptIndexError, FileNotFoundError) as error:
            if self.size_bytes:  # else a creation that failed half way has left zeros
                _logger.warning("rebuilding the indexes of %s: %s", self, error)
            self.rebuild_indexes()

    @property
    def has_open_file(self) -> bool:
        return self._file is not None

    @property
    def is_appendable(self) -> bool:
        """Whether the indexes are prepared for appends."""
        return self._is_appendable

    def release_files(self) -> None:
        """Close a closed segment's files; the next read opens them again.

        Also of an active one, when its log goes offline: then any thread may call it.
        """
        self._file = self._offset_index = self._time_index = None
        self._is_appendable = False

    def rename(self, state: FileState) -> None:
        """Rename its files to the suffix of another state. An open file stays open.

        Raises OSError: then the renames are undone, as far as possible.
        """
        self._offset_index = self._time_index = None
        renamed: list[FileKind] = []
        try:
            for kind in _RENAME_ORDER:
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
        """Use the new name of the log's directory, which was renamed."""
        self.directory = directory
        self._offset_index = self._time_index = None
        self._update_txn_index_path()

    def _update_txn_index_path(self) -> None:
        if self._txn_index is not None:
            self._txn_index.path = self.path(FileKind.TXN_INDEX)

    def use_copies_in(self, directory: Path) -> None:
        """Use the copies of its files in that directory from now on."""
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
        """Whether a write of `size` bytes must go to a new segment. Kafka: shouldRoll."""
        if self.has_room(size, limits, max_timestamp, last_offset):
            return False
        if self.size_bytes + size > limits.segment_bytes:
            return True
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        age_ms = self.age_ms(now_ms, max_timestamp)
        if self.size_bytes and age_ms > limits.segment_ms - self._settings.jitter_ms:
            return True
        if not self._is_appendable:
            self._open_indexes_for_append()
        return self._index_room <= 0

    def has_room(self, size: int, limits: RollLimits, max_timestamp: int, last_offset: int) -> bool:
        """Whether what is in memory is enough to say that a write needs no new segment."""
        if self.size_bytes:
            first_ms = self._first_timestamp_ms
            if first_ms is None or first_ms < 0:
                return False
            if max_timestamp - first_ms > limits.segment_ms - self._settings.jitter_ms:
                return False
        return (
            self._index_room > 0
            and self._is_appendable
            and self.size_bytes + size <= limits.segment_bytes
            and last_offset - self.base_offset <= MAX_RELATIVE_OFFSET
        )

    def prepare_append(self) -> None:
        """Read what the first append after opening needs, and extend the index files."""
        self._file = self.file
        self._first_timestamp_ms = self.first_timestamp_ms if self.size_bytes else None
        if not self._is_appendable:
            self._open_indexes_for_append()

    def age_ms(self, now_ms: int, max_timestamp: int) -> int:
        """The age of the segment with a record of that timestamp, from its first batch on."""
        first_ms = self.first_timestamp_ms
        return now_ms - self.created_ms if first_ms < 0 else max_timestamp - first_ms

    @property
    def first_timestamp_ms(self) -> int:
        """The largest timestamp of the first batch; -1 if there is none."""
        if self._first_timestamp_ms is None and self.size_bytes:
            with suppress(CorruptBatchError):  # then it is unknown, as without timestamps
                for _, header in scan_headers(self.files, self.file, 0, self.size_bytes):
                    self._first_timestamp_ms = header.max_timestamp
                    break
        return NO_TIMESTAMP if self._first_timestamp_ms is None else self._first_timestamp_ms

    def modified_ms(self) -> int:
        """The modification time of the log file."""
        return self.files.modified_ms(self.path(FileKind.LOG))

    def append(self, buffers: Sequence[Buffer], last_offset: int, max_timestamp: int) -> int:
        """Write a batch at the end of the file, and return its size. Raises OSError.

        If that fails, the state does not change.
        """
        file = self._file or self.file
        try:
            size = self.files.append(file, buffers)
        except OSError:
            # If the truncation fails too, the next append overwrites the partial write.
            with suppress(OSError):
                self.files.truncate(file, self.size_bytes)
            raise
        self.note_append(size, last_offset, max_timestamp)
        return size

    def note_append(self, size: int, last_offset: int, max_timestamp: int) -> None:
        """Update the state for a batch that was written at the end of the file."""
        newest = self._newest or self.newest
        if max_timestamp > newest.timestamp_ms:
            self._newest = newest = TimestampOffset(max_timestamp, last_offset)
        if self._bytes_since_index_entry > self._settings.index_interval_bytes:
            self._append_to_indexes(last_offset, newest)
            self._bytes_since_index_entry = 0
        if not self.size_bytes:
            self._first_timestamp_ms = max_timestamp
        self.size_bytes += size
        self._bytes_since_index_entry += size

    def _append_to_indexes(self, last_offset: int, newest: TimestampOffset) -> None:
        # The index is full only if segment.index.bytes was lowered and an older segment is rebuilt.
        # Then batches after the last entry are found by scanning.
        if self._index_room > 0:
            offsets = self._offset_index or self.offset_index
            times = self._time_index or self.time_index
            try:
                offsets.append(last_offset, self.size_bytes)
                times.maybe_append(newest.timestamp_ms, newest.offset)
            except ValueError as error:
                # An earlier entry, or the offset of an earlier batch, is damaged. This batch is
                # written already; the next append begins a new segment.
                _logger.warning("%s gets no more index entries: %s", self, error)
                self._index_room = 0
                return
            self._index_room -= 1
            if offsets.entries % _ENTRIES_AT_ONCE == 1:
                # By them, those who read the files beside the broker find the end of the log. And
                # Kafka's dump tool takes zeros as the end of an index, but not as its first entry.
                # If the write fails, the next one or the next flush tries again. It may have to
                # open the files, and the batch is written already.
                with suppress(OSError), self.files.allow_waiting():
                    offsets.write_out()
                    times.write_out()

    def _open_indexes_for_append(self) -> None:
        """Extend the index files to their full size and load what appends need."""
        # Load now, because no read may fail after a batch was written. This comes before the
        # extension, because it may rebuild the indexes.
        self._newest = self.newest
        self.aborted()
        self.offset_index.become_active()
        self.time_index.become_active()
        self._update_index_room()

    def seal(self) -> None:
        """Close the active segment: add the last time entry, truncate files to their size."""
        self.txn_index.write_out()
        self.close_indexes()
        if self.files.size(self.path(FileKind.LOG)) != self.size_bytes:
            self.files.truncate(self.file, self.size_bytes)

    def close_indexes(self) -> None:
        """Add the last time entry, and truncate the index files to their entries."""
        newest = self.newest
        self._index_room = 0  # if this fails half way, the next append tries to roll again
        last = self.time_index.last_entry
        # One with a later offset and an older timestamp is damaged, and the last.
        if newest.timestamp_ms > last.timestamp_ms and newest.offset >= last.offset:
            self.time_index.maybe_append(newest.timestamp_ms, newest.offset, closing=True)
        self.offset_index.trim()
        self.time_index.trim()
        self._is_appendable = False

    def sync_targets(self) -> list[OpenFile]:
        """Write index entries that are only in memory; return the open files to sync."""
        indexes = [each for each in (self.offset_index, self.time_index) if each.is_unsynced]
        targets = [self.file, *(index.write_out() for index in indexes)]
        self.txn_index.write_out()
        for index in indexes:
            index.note_sync()
        return targets

    # --- repair

    def reset(self) -> None:
        """Drop the state of all batches; the file is not changed. `note_append` adds each again."""
        self._file = self.file  # opened before `size_bytes`, its append position, is reset
        self.size_bytes = self._bytes_since_index_entry = 0
        self._newest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        self._first_timestamp_ms = None
        self._has_damage = False
        self._open_empty_indexes()

    def _open_empty_indexes(self) -> None:
        files, base, size = self.files, self.base_offset, self._settings.index_bytes
        offsets, times = self.path(FileKind.OFFSET_INDEX), self.path(FileKind.TIME_INDEX)
        self._offset_index = OffsetIndex.create(files, offsets, base, size)
        self._time_index = TimeIndex.create(files, times, base, size)
        self._update_index_room()

    def _update_index_room(self) -> None:
        # The time index gets an entry only when the offset index does. Its last slot is for
        # closing the segment.
        offsets, times = self.offset_index, self.time_index
        self._index_room = min(
            offsets.max_entries - offsets.entries, times.max_entries - times.entries - 1
        )
        self._is_appendable = True

    def rebuild_indexes(self) -> None:
        """Rebuild both indexes from the batch headers, up to the first corrupt batch.

        Waits for the disk even inside NonBlockingReads, because an incomplete index would be worse.
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
            # The incomplete index files are checked at the next use, as existing ones are.
            self._offset_index = self._time_index = self._newest = self._first_timestamp_ms = None
            self._is_appendable = False
            raise
        finally:
            self.size_bytes = size
        if not was_appendable:
            self.close_indexes()

    def truncate_to(self, offset: int) -> int:
        """Drop the batch that holds `offset` and all later ones; return the number of bytes."""
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
        """The batch that holds `offset`, or the first one after it, or None if there is none."""
        for position, header in self.headers_from(offset):
            if header.base_offset + header.last_offset_delta >= offset:
                return FoundBatch(position, header)
        return None

    def check_end(self, offset: int) -> None:
        """Raise CorruptBatchError if the last whole batch does not end at the segment's end.

        `find` returns None at such a batch, too: one that is incomplete, or whose length is wrong.
        """
        end = self._start_of_scan(offset)
        for position, header in scan_headers(self.files, self.file, end, self.size_bytes):
            end = position + header.size_bytes
        if end != self.size_bytes:
            raise CorruptBatchError(self.file, end, "no whole batch begins here")

    def batch_at(self, position: int) -> FoundBatch:
        """The batch that begins at `position`. Raises CorruptBatchError."""
        header = self._header_at(position)
        if header is None:
            raise CorruptBatchError(self.file, position, "no batch begins here")
        return FoundBatch(position, header)

    def _header_at(self, position: int) -> BatchHeader | None:
        return header_at(self.files, self.file, position, self.size_bytes)

    def headers_from(self, offset: int) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers, from the batch that holds `offset` or an earlier one on."""
        start = self._start_of_scan(offset)
        return scan_headers(self.files, self.file, start, self.size_bytes)

    def headers_near(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers, from a batch that begins at or before `position` on."""
        entry = self.offset_index.before_position(position)
        if not self._is_valid_offset_entry(entry):
            entry = self._other_entry(lambda: self.offset_index.before_position(position))
        return scan_headers(self.files, self.file, entry.position, self.size_bytes)

    def _start_of_scan(self, offset: int) -> int:
        """The position from which to search for `offset`, by a valid entry of the offset index."""
        entry = self.offset_index.lookup(offset)
        if not self._is_valid_offset_entry(entry):
            entry = self._other_entry(lambda: self.offset_index.lookup(offset))
        return entry.position

    def _other_entry(self, look_up: Callable[[], OffsetPosition]) -> OffsetPosition:
        """A valid entry of the rebuilt index; or one before that which is not valid."""
        self._rebuild_for(look_up())
        entry = look_up()
        while not self._is_valid_offset_entry(entry):
            entry = self.offset_index.before_position(entry.position - 1)
        return entry

    def _rebuild_for(self, entry: OffsetPosition | TimestampOffset) -> None:
        """Rebuild the indexes because of an entry, if all batch headers are valid."""
        if self._has_damage:
            return
        try:
            with self.files.allow_waiting():
                for _ in scan_headers(self.files, self.file, 0, self.size_bytes):
                    pass
        except CorruptBatchError as error:
            self._has_damage = True
            _logger.warning("the indexes of %s stay: %s", self, error)
            return
        _logger.warning("rebuilding the indexes of %s: %s does not match the log", self, entry)
        self.rebuild_indexes()

    def _is_valid_offset_entry(self, entry: OffsetPosition) -> bool:
        """Whether the batch at an entry's position ends with its offset."""
        return entry.position == 0 or (
            0 < entry.position < self.size_bytes and self._ends_with(entry.position, entry.offset)
        )

    def _ends_with(self, position: int, offset: int) -> bool:
        """Whether a batch at `position` ends with `offset`."""
        try:
            header = self._header_at(position)
        except CorruptBatchError:
            return False
        return header is not None and header.last_offset == offset

    def whole_batches(self, start: int, max_bytes: int) -> WholeBatches | None:
        """Whole batches from the one at `start` on that fit into `max_bytes`.

        They are fewer if an index entry ends them. Returns None if the first batch does not fit.
        """
        entry = self.offset_index.before_position(start + max_bytes)
        if entry.position > start:
            header = self._header_at(entry.position)
            if header is not None and header.last_offset == entry.offset:
                return WholeBatches(entry.position - start, header.base_offset)
        size = next_offset = 0
        for position, header in scan_headers(self.files, self.file, start, self.size_bytes):
            end = position + header.batch_length + LOG_OVERHEAD - start
            if end > max_bytes:
                break
            size, next_offset = end, header.next_offset
        return WholeBatches(size, next_offset) if size else None

    def tail(self) -> WholeBatches:
        """The size of all whole batches in the file, and the offset after the last.

        Raises CorruptBatchError if the file is not as a clean close left it.
        """
        size, next_offset = 0, self.base_offset
        for position, header in self.headers_from(self.offset_index.last_offset):
            size, next_offset = position + header.size_bytes, header.next_offset
        return WholeBatches(size, next_offset)

    def batches(self, offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Header and bytes of whole batches, CRC verified, from the one that holds `offset` on."""
        found = self.find(offset)
        if found is not None:
            yield from read_batches(self.files, self.file, found.position, self.size_bytes)

    def aborted(self) -> Sequence[AbortedTransaction]:
        """The aborted transactions whose markers are in this segment, by marker offset."""
        return self.txn_index.entries()

    # --- timestamps

    @property
    def newest(self) -> TimestampOffset:
        """The largest timestamp (-1: none) and the last offset of the batch that had it first."""
        if self._newest is None:
            entry = self.time_index.last_entry
            if self._is_valid_time_entry(entry):
                self._newest = entry
            else:
                self._rebuild_for(entry)  # which sets it
                self._newest = self._newest or self._newest_before_damage()
        return self._newest

    def look_up_newest(self) -> TimestampOffset:
        """As `newest`, but files that must be opened for it are closed again.

        For lookups over the segments of a log, of which there may be thousands.
        """
        if self._newest is None:
            self._newest = self.newest
            if not self._is_appendable:
                self.release_files()
        return self._newest

    def _newest_before_damage(self) -> TimestampOffset:
        """The newest of the batches before the damage, or the last time entry if that is newer.

        As in Kafka, that entry counts although its batch cannot be read: the next one is after it.
        """
        newest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        with suppress(CorruptBatchError):
            for _, header in scan_headers(self.files, self.file, 0, self.size_bytes):
                if header.max_timestamp > newest.timestamp_ms:
                    newest = TimestampOffset(header.max_timestamp, header.last_offset)
        return max(newest, self.time_index.last_entry)

    def _is_valid_time_entry(self, entry: TimestampOffset) -> bool:
        """Whether the batch that ends with an entry's offset has its timestamp."""
        try:
            if entry.timestamp_ms < 0:
                # Messages of magic 0 have no timestamp, but later batches may have one.
                return self.first_timestamp_ms < 0 and self._last_timestamp_ms() < 0
            found = self.find(entry.offset)
        except CorruptBatchError:
            return False
        return (
            found is not None
            and found.header.last_offset == entry.offset
            and found.header.max_timestamp == entry.timestamp_ms
        )

    def _last_timestamp_ms(self) -> int:
        """The largest timestamp of the last batch; -1 if there is none."""
        last_ms = NO_TIMESTAMP
        for _, header in self.headers_from(self.offset_index.last_offset):
            last_ms = header.max_timestamp
        return last_ms

    def largest_timestamp_ms(self) -> int:
        """The largest timestamp of a record; without timestamps, the file's modification time.

        Opens files as `look_up_newest`.
        """
        newest_ms = self.look_up_newest().timestamp_ms
        return newest_ms if newest_ms >= 0 else self.files.modified_ms(self.path(FileKind.LOG))

    def headers_from_time(
        self, timestamp_ms: int, start_offset: int
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers, from where a search for a timestamp must begin.

        Earlier batches have no record at or after `start_offset` that is at least as new as
        `timestamp_ms`.
        """
        entry = self.time_index.lookup(timestamp_ms)
        if entry.timestamp_ms >= 0 and not self._is_valid_time_entry(entry):
            self._rebuild_for(entry)
            entry = self.time_index.lookup(timestamp_ms)
            while entry.timestamp_ms >= 0 and not self._is_valid_time_entry(entry):
                entry = self.time_index.lookup(entry.timestamp_ms - 1)
        # A valid entry has no negative timestamp.
        known = start_offset if entry.timestamp_ms < 0 else max(entry.offset, start_offset)
        return self.headers_from(known)
