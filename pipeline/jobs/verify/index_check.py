"""Checks the entries of a segment's offset and time index against the segment's batches.

An entry of the offset index holds the position of a batch and its last offset. An entry of the time
index holds the largest timestamp up to an offset, exactly. The indexes are read before the log is
opened, because an entry is written after its batch. The unused rest of an active segment's index
is zeros.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from odradek.pipeline.decoding.varints import Bools, Ints
from odradek.protocol.batch_header import NO_TIMESTAMP
from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.files import Files
from odradek.storage.offset_index import OffsetIndex
from odradek.storage.time_index import TimeIndex

from .findings import Finding, Findings, Kind, Severity
from .segment_walk import BatchChunk

_OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY = np.dtype([("timestamp_ms", ">i8"), ("offset", ">i4")])
_MAX_INT64 = 2**63 - 1
assert _OFFSET_ENTRY.itemsize == OffsetIndex.entry.size
assert _TIME_ENTRY.itemsize == TimeIndex.entry.size


@dataclass(slots=True)
class _Entries:
    """The entries of an index that are not checked yet, as columns."""

    path: Path
    first: Ints
    second: Ints

    def take(self, end: int) -> tuple[Ints, Ints]:
        """Take the entries before the first whose second field is `end` or more."""
        after = np.flatnonzero(self.second >= end)
        count = int(after[0]) if after.size else self.second.size
        taken = self.first[:count], self.second[:count]
        self.first, self.second = self.first[count:], self.second[count:]
        return taken


class IndexCheck:
    """The indexes of one segment, as they were before its log was opened. Raises OSError."""

    def __init__(
        self, files: Files, log_path: Path, base_offset: int, findings: Findings, *, is_active: bool
    ) -> None:
        """See SegmentWork for `is_active`."""
        self._findings = findings
        self._base_offset = base_offset
        self._is_active = is_active
        self._newest_ms = NO_TIMESTAMP
        directory = log_path.parent
        offset_index = directory / segment_file(base_offset, FileKind.OFFSET_INDEX)
        time_index = directory / segment_file(base_offset, FileKind.TIME_INDEX)
        self._offsets = self._entries(files, offset_index, _OFFSET_ENTRY)
        self._times = self._entries(files, time_index, _TIME_ENTRY)

    def _entries(self, files: Files, path: Path, entry: np.dtype) -> _Entries:
        """Return the leading entries that are in ascending order, with absolute offsets."""
        raw = self._read(files, path, entry)
        first, second = (
            raw[name].astype(np.int64) + (self._base_offset if name == "offset" else 0)
            for name in entry.names or ()
        )
        falls = np.flatnonzero((np.diff(first) <= 0) | (np.diff(second) < 0))
        if not falls.size:
            return _Entries(path, first, second)
        last = int(falls[0])
        what = (
            f"entries are not ascending: ({first[last + 1]}, {second[last + 1]}) follows "
            f"({first[last]}, {second[last]})"
        )
        self._findings.problem(Kind.INDEX, str(path), what)
        return _Entries(path, first[: last + 1], second[: last + 1])

    def _read(self, files: Files, path: Path, entry: np.dtype) -> np.ndarray:
        try:
            data = files.read(path)
        except FileNotFoundError:
            if not self._is_active:
                self._findings.problem(Kind.INDEX, str(path), "the index is missing")
            return np.zeros(0, entry)
        if self._is_active:
            used = -(-len(data.rstrip(b"\0")) // entry.itemsize)
            data = data[: used * entry.itemsize]
        if len(data) % entry.itemsize:
            what = f"its size of {len(data)} bytes is not a multiple of {entry.itemsize}"
            self._findings.problem(Kind.INDEX, str(path), what)
        return np.frombuffer(data, entry, len(data) // entry.itemsize)

    # --- called for each chunk of the segment

    def check(self, chunk: BatchChunk, end: int, broken: list[int]) -> None:
        """Check the entries up to byte `end`; `broken` are positions of broken batches so far."""
        self._check_positions(chunk, end, broken)
        newest = np.maximum.accumulate(
            np.concatenate(([self._newest_ms], chunk.table.max_timestamp))
        )
        self._newest_ms = int(newest[-1])
        if broken:
            self._times.take(_MAX_INT64)  # the timestamps of a broken batch are unknown
        else:
            self._check_times(chunk, newest[1:])

    def _check_positions(self, chunk: BatchChunk, end: int, broken: list[int]) -> None:
        table = chunk.table
        offsets, positions = self._offsets.take(end)
        row = np.minimum(np.searchsorted(table.position, positions), table.height - 1)
        begins = table.position[row] == positions
        wrong: Bools = (~begins | (table.last_offset[row] != offsets)) & ~np.isin(positions, broken)
        for slot in np.flatnonzero(wrong).tolist():
            entry = f"({offsets[slot]}, {positions[slot]})"
            what = f"{entry}: no batch begins at this position"
            if begins[slot]:
                what = f"{entry}: the batch ends at offset {table.last_offset[row[slot]]}"
            self._wrong(self._offsets.path, what, int(offsets[slot]))

    def _check_times(self, chunk: BatchChunk, newest_ms: Ints) -> None:
        last_offset = np.maximum.accumulate(chunk.table.last_offset)
        times_ms, offsets = self._times.take(int(last_offset[-1]) + 1)
        actual_ms = newest_ms[np.searchsorted(last_offset, offsets)]
        for slot in np.flatnonzero(actual_ms != times_ms).tolist():
            entry = f"({times_ms[slot]} ms, {offsets[slot]})"
            what = f"{entry}: the largest timestamp up to this offset is {actual_ms[slot]} ms"
            self._wrong(self._times.path, what, int(offsets[slot]))

    def finish(self, end: int, *, is_lost: bool, has_broken: bool) -> None:
        """Check the entries after the last batch, which ends at byte `end`.

        `is_lost`: the walk stopped early, so what follows is unknown.
        """
        if is_lost:
            return
        self._offsets.take(end)
        self._add_remaining(self._offsets)
        if not has_broken:
            self._add_remaining(self._times)

    def _add_remaining(self, entries: _Entries) -> None:
        if entries.first.size:
            what = f"({entries.first[0]}, {entries.second[0]}) is after the end of the log"
            self._wrong(entries.path, what, None, more=int(entries.first.size) - 1)

    def _wrong(self, path: Path, what: str, offset: int | None, more: int = 0) -> None:
        self._findings.add(
            Finding(Severity.PROBLEM, Kind.INDEX, str(path), what, None, offset, more)
        )
