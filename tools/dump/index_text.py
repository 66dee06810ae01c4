"""Prints an offset index or a time index, and compares it with its log, as Kafka's tool does.

Kafka: DumpLogSegments.dumpIndex and dumpTimeIndex, AbstractIndex.
"""

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from odradek.protocol.batch_header import NO_TIMESTAMP
from odradek.protocol.compression import NO_LIMIT
from odradek.storage.filenames import FileKind
from odradek.storage.files import Files
from odradek.storage.index_file import IndexFile
from odradek.storage.inspect.raw_batch import RawBatch
from odradek.storage.inspect.raw_message import UnreadableError
from odradek.storage.offset_index import OffsetIndex
from odradek.storage.time_index import TimeIndex

from .findings import Findings
from .java_text import JavaFile, parse_long
from .log_text import LogPart, Write

_WARM_BYTES = 8192


class IndexOptions(NamedTuple):
    """What to check and print of an index."""

    sanity_only: bool  # only the check of a broker's start
    verify_only: bool  # only errors, no entries
    max_message_bytes: int  # how far to read for the batch of an entry


class IndexEntries:
    """The entries of an index file. Kafka: AbstractIndex."""

    def __init__(self, files: Files, path: Path, base_offset: int, kind: type[IndexFile]) -> None:
        """Raises OSError."""
        self._data = files.read(path)
        self._entry: struct.Struct = kind.entry
        self.base_offset = base_offset
        self.length = len(self._data)
        self.count = self.length // self._entry.size

    def at(self, slot: int) -> tuple[int, int]:
        """The two fields of an entry as stored: offsets are relative to `base_offset`."""
        first, second = self._entry.unpack_from(self._data, slot * self._entry.size)
        return first, second

    @property
    def used(self) -> int:
        """The number of entries before the zeros at the end.

        The file of the active segment is preallocated, so unused entries are zero.
        """
        return min(self.count, -(-len(self._data.rstrip(b"\0")) // self._entry.size))

    def largest_at_most(self, offset: int) -> tuple[int, int] | None:
        """Find the last entry whose offset is not above `offset`.

        Searches the last 8 KiB first, as Kafka does: in a damaged index, where the entries do not
        ascend, another order would find another entry.
        """
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
    base_offset = parse_long(file.stem)
    log = LogPart(files, file.sibling(FileKind.LOG))
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
            return  # the unused part of the active segment's index
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
            newest_ms = max((r.timestamp_ms for r in batch.records(NO_LIMIT)), default=NO_TIMESTAMP)
            newest_ms = max(newest_ms, NO_TIMESTAMP)
            if newest_ms != timestamp_ms:
                findings.note_time_mismatch(file.absolute, timestamp_ms, newest_ms)
            if previous_ms >= timestamp_ms:
                findings.note_time_out_of_order(file.absolute, timestamp_ms, previous_ms)
        if not options.verify_only:
            write(f"timestamp: {timestamp_ms} offset: {offset}\n")
        previous_ms = timestamp_ms


class TimeIndexWalk:
    """The entries of a time index, each with the batch of the log that it refers to."""

    def __init__(self, files: Files, file: JavaFile) -> None:
        """Raises OSError, ValueError."""
        self._base_offset = parse_long(file.stem)
        self._log = LogPart(files, file.sibling(FileKind.LOG))
        offsets_path = file.sibling(FileKind.OFFSET_INDEX).path
        self._offsets = IndexEntries(files, offsets_path, self._base_offset, OffsetIndex)
        self.times = IndexEntries(files, file.path, self._base_offset, TimeIndex)

    def entries(self) -> Iterator[tuple[int, int, RawBatch | None]]:
        """Yields timestamp, offset, and the first batch whose last offset is not below it.

        Stops at the unused part of the active segment's index. Raises UnreadableError.
        """
        search = BatchSearch(self._log)
        for slot in range(self.times.count):
            timestamp_ms, relative = self.times.at(slot)
            if relative == 0 and slot > 0:
                return
            offset = self._base_offset + relative
            start = self._offsets.largest_at_most(offset)
            batch = search.first_reaching(offset, 0 if start is None else start[1])
            yield timestamp_ms, offset, batch


class BatchSearch:
    """Finds batches by offset, and checks that the log can be walked to its end from there.

    Kafka's tool walks from each entry's position to the end of the log, and fails if a batch on the
    way is damaged. Here the positions of the first walk are remembered: a later walk can stop at
    any of them, because the rest is known to be good.
    """

    def __init__(self, log: LogPart) -> None:
        self._log = log
        self._walked = array("i")  # positions of the batches of the first walk, ascending

    def first_reaching(self, offset: int, position: int) -> RawBatch | None:
        """The first batch from `position` that ends at `offset` or later. Raises UnreadableError.

        Fails also if a batch after it cannot be read.
        """
        if not self._is_walked(position):
            self._walk(position)
        return next((b for b in self._log.batches(position) if b.last_offset >= offset), None)

    def _walk(self, position: int) -> None:
        is_first = not self._walked
        for batch in self._log.batches(position):
            if is_first:
                self._walked.append(batch.position)
            elif self._is_walked(batch.position):
                return

    def _is_walked(self, position: int) -> bool:
        index = bisect_left(self._walked, position)
        return index < len(self._walked) and self._walked[index] == position


def check_offsets(index: IndexEntries) -> None:
    """Run a broker's startup check of an offset index. Raises UnreadableError if it fails."""
    if index.count and index.at(index.count - 1)[0] < 0:
        raise UnreadableError("the last offset is below the segment's base offset")
    _check_length(index, OffsetIndex.entry.size)


def check_times(index: IndexEntries) -> None:
    """Run a broker's startup check of a time index. Raises UnreadableError if it fails."""
    if index.count:
        first, last = index.at(0), index.at(index.count - 1)
        if last[0] < first[0]:
            raise UnreadableError(f"the last timestamp, {last[0]}, is below the first, {first[0]}")
        if last[1] < 0:
            raise UnreadableError("the last offset is below the segment's base offset")
    _check_length(index, TimeIndex.entry.size)


def _check_length(index: IndexEntries, size: int) -> None:
    if index.length % size:
        raise UnreadableError(f"its size, {index.length} bytes, is not a multiple of {size}")
