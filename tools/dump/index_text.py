"""An offset index or a time index, held against its log, in the lines of Kafka's tool.

Kafka: DumpLogSegments.dumpIndex and dumpTimeIndex, AbstractIndex.
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.batch_header import NO_TIMESTAMP
from odradek.storage.filenames import FileKind
from odradek.storage.files import Files
from odradek.storage.index_file import IndexFile
from odradek.storage.offset_index import OffsetIndex
from odradek.storage.raw_message import UnreadableError
from odradek.storage.raw_scan import RawBatch
from odradek.storage.time_index import TimeIndex

from .findings import Findings
from .java_text import JavaFile, long_of
from .log_text import LogBytes, Write

_WARM_BYTES = 8192


class IndexOptions(NamedTuple):
    """How an index is looked at."""

    sanity_only: bool
    verify_only: bool
    max_message_bytes: int


class IndexEntries:
    """The entries of an index file as (key, value), the key of an offset index made absolute."""

    def __init__(self, files: Files, path: Path, base_offset: int, kind: type[IndexFile]) -> None:
        """Raises OSError."""
        self._data = files.read(path)
        self._entry: struct.Struct = kind.entry
        self.base_offset = base_offset
        self.length = len(self._data)
        self.count = self.length // self._entry.size

    def at(self, slot: int) -> tuple[int, int]:
        """As they are stored."""
        first, second = self._entry.unpack_from(self._data, slot * self._entry.size)
        return first, second

    @property
    def used(self) -> int:
        """How many there are before the zeros of an index that is, or was, being written to."""
        return min(self.count, -(-len(self._data.rstrip(b"\0")) // self._entry.size))

    def largest_at_most(self, offset: int) -> tuple[int, int] | None:
        """By Kafka's search: it looks at the last entries first, which tells in a damaged index."""
        if not self.count:
            return None
        relative = offset - self.base_offset
        hot = max(0, self.count - 1 - _WARM_BYTES // self._entry.size)
        if self.at(hot)[0] < relative:
            return self._search(relative, hot, self.count - 1)
        if self.at(0)[0] > relative:
            return None
        return self._search(relative, 0, hot)

    def _search(self, relative: int, low: int, high: int) -> tuple[int, int]:
        while low < high:
            middle = (low + high + 1) // 2
            found = self.at(middle)
            if found[0] == relative:
                return found
            low, high = (low, middle - 1) if found[0] > relative else (middle, high)
        return self.at(low)


def dump_index(
    files: Files, file: JavaFile, options: IndexOptions, findings: Findings, write: Write
) -> None:
    """Print an `.index` file. Raises OSError, UnreadableError, ValueError."""
    base_offset = long_of(file.stem)
    log = LogBytes(files, file.sibling(FileKind.LOG))
    index = IndexEntries(files, file.path, base_offset, OffsetIndex)
    if not index.count:
        write(f"{file.text} is empty.\n")
        return
    if options.sanity_only:
        check_offsets(index)
        write(f"{file.text} passed sanity check.\n")
        return
    for slot in range(index.count):
        relative, position = index.at(slot)
        if relative == 0 and slot > 0:
            return  # the unused part of an index that is still written to
        offset = base_offset + relative
        batch = next(log.batches(position, options.max_message_bytes), None)
        if batch is None:
            raise UnreadableError(f"the entry of offset {offset}: no batch begins at {position}")
        if batch.last_offset != offset:
            findings.note_index_mismatch(file.absolute, offset, batch.last_offset)
        if not options.verify_only:
            write(f"offset: {offset} position: {position}\n")


def dump_time_index(
    files: Files, file: JavaFile, options: IndexOptions, findings: Findings, write: Write
) -> None:
    """Print a `.timeindex` file. Raises OSError, UnreadableError, ValueError."""
    walk = TimeIndexWalk(files, file)
    if options.sanity_only:
        check_times(walk.times)
        write(f"{file.text} passed sanity check.\n")
        return
    previous_ms = NO_TIMESTAMP
    for timestamp_ms, offset, batch in walk.entries():
        if batch is None or batch.last_offset != offset:
            found = -1 if batch is None else batch.last_offset
            findings.note_offset_not_found(file.absolute, offset, found)
        else:
            newest_ms = max((r.timestamp_ms for r in batch.records()), default=NO_TIMESTAMP)
            newest_ms = max(newest_ms, NO_TIMESTAMP)
            if newest_ms != timestamp_ms:
                findings.note_time_mismatch(file.absolute, timestamp_ms, newest_ms)
            if previous_ms >= timestamp_ms:
                findings.note_time_out_of_order(file.absolute, timestamp_ms, previous_ms)
        if not options.verify_only:
            write(f"timestamp: {timestamp_ms} offset: {offset}\n")
        previous_ms = timestamp_ms


class TimeIndexWalk:
    """A time index with the batches of its log that it names."""

    def __init__(self, files: Files, file: JavaFile) -> None:
        """Raises OSError, ValueError."""
        self._base_offset = long_of(file.stem)
        self._log = LogBytes(files, file.sibling(FileKind.LOG))
        offsets_path = file.sibling(FileKind.OFFSET_INDEX).path
        self._offsets = IndexEntries(files, offsets_path, self._base_offset, OffsetIndex)
        self.times = IndexEntries(files, file.path, self._base_offset, TimeIndex)

    def entries(self) -> Iterator[tuple[int, int, RawBatch | None]]:
        """Timestamp, offset, and the first batch that reaches the offset. Raises UnreadableError.

        Ends at the unused part of an index that is still written to.
        """
        walks = Walks(self._log)
        for slot in range(self.times.count):
            timestamp_ms, relative = self.times.at(slot)
            if relative == 0 and slot > 0:
                return
            offset = self._base_offset + relative
            start = self._offsets.largest_at_most(offset)
            batch = walks.first_that_reaches(offset, 0 if start is None else start[1])
            yield timestamp_ms, offset, batch


class Walks:
    """Walks from an entry's position to the end of the log, which must be possible.

    Kafka's tool reads all of it for each entry. Here it is walked once: from a batch that a walk
    has come by, the end can be reached.
    """

    def __init__(self, log: LogBytes) -> None:
        self._log = log
        self._seen = array("i")  # where the batches of the first walk begin, ascending

    def first_that_reaches(self, offset: int, position: int) -> RawBatch | None:
        """Raises UnreadableError."""
        if not self._has_seen(position):
            self._walk(position)
        return next((b for b in self._log.batches(position) if b.last_offset >= offset), None)

    def _walk(self, position: int) -> None:
        is_first = not self._seen
        for batch in self._log.batches(position):
            if is_first:
                self._seen.append(batch.position)
            elif self._has_seen(batch.position):
                return

    def _has_seen(self, position: int) -> bool:
        at = bisect_left(self._seen, position)
        return at < len(self._seen) and self._seen[at] == position


def check_offsets(index: IndexEntries) -> None:
    """What is looked at when a broker starts. Raises UnreadableError."""
    if index.count and index.at(index.count - 1)[0] < 0:
        raise UnreadableError("the last offset lies before the first of the segment")
    _check_length(index, OffsetIndex.entry.size)


def check_times(index: IndexEntries) -> None:
    """What is looked at when a broker starts. Raises UnreadableError."""
    if index.count:
        first, last = index.at(0), index.at(index.count - 1)
        if last[0] < first[0]:
            raise UnreadableError(f"it begins at {first[0]} ms and ends at {last[0]} ms")
        if last[1] < 0:
            raise UnreadableError("the last offset lies before the first of the segment")
    _check_length(index, TimeIndex.entry.size)


def _check_length(index: IndexEntries, size: int) -> None:
    if index.length % size:
        raise UnreadableError(f"its {index.length} bytes are no multiple of {size}")
