"""Checks the entries of a segment's offset and time index against the segment's batches.

An entry of the offset index holds the position of a batch and its last offset. An entry of the time
index holds the largest timestamp up to an offset, exactly. The indexes are read before the log is
opened, because an entry is written after its batch. The unused rest of an active segment's index
is zeros.
"""

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
assert _OFFSET_ENTRY.itemsize == OffsetIndex.entry.size
assert _TIME_ENTRY.itemsize == TimeIndex.entry.size


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
        self._offsets_path = log_path.parent / segment_file(base_offset, FileKind.OFFSET_INDEX)
        self._times_path = log_path.parent / segment_file(base_offset, FileKind.TIME_INDEX)
        by_offset = self._read(files, self._offsets_path, _OFFSET_ENTRY)
        self._offsets: Ints = by_offset["offset"].astype(np.int64) + base_offset
        self._positions: Ints = by_offset["position"].astype(np.int64)
        by_time = self._read(files, self._times_path, _TIME_ENTRY)
        self._times_ms: Ints = by_time["timestamp_ms"].astype(np.int64)
        self._time_offsets: Ints = by_time["offset"].astype(np.int64) + base_offset
        count = self._ascending(self._offsets_path, self._offsets, self._positions)
        self._offsets, self._positions = self._offsets[:count], self._positions[:count]
        count = self._ascending(self._times_path, self._times_ms, self._time_offsets)
        self._times_ms, self._time_offsets = self._times_ms[:count], self._time_offsets[:count]
        self._offset_slot = self._time_slot = 0

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

    def _ascending(self, path: Path, first: Ints, second: Ints) -> int:
        """Return the number of leading entries that are in ascending order."""
        falls = np.flatnonzero((np.diff(first) <= 0) | (np.diff(second) < 0))
        if not falls.size:
            return int(first.size)
        at = int(falls[0])
        what = (
            f"entries are not ascending: ({first[at + 1]}, {second[at + 1]}) follows "
            f"({first[at]}, {second[at]})"
        )
        self._findings.problem(Kind.INDEX, str(path), what)
        return at + 1

    # --- called for each chunk of the segment

    def check(self, chunk: BatchChunk, end: int, broken: list[int]) -> None:
        """Check the entries up to byte `end`; `broken` are positions of broken batches so far."""
        self._check_positions(chunk, end, broken)
        newest = np.maximum.accumulate(
            np.concatenate(([self._newest_ms], chunk.table.max_timestamp))
        )
        self._newest_ms = int(newest[-1])
        if broken:
            self._time_slot = self._times_ms.size  # the timestamps of a broken batch are unknown
        else:
            self._check_times(chunk, newest[1:])

    def _check_positions(self, chunk: BatchChunk, end: int, broken: list[int]) -> None:
        table = chunk.table
        slots = self._slots(self._positions, self._offset_slot, end)
        self._offset_slot = slots.stop
        positions, offsets = self._positions[slots], self._offsets[slots]
        row = np.minimum(np.searchsorted(table.position, positions), table.height - 1)
        begins = table.position[row] == positions
        wrong: Bools = (~begins | (table.last_offset[row] != offsets)) & ~np.isin(positions, broken)
        for at in np.flatnonzero(wrong).tolist():
            entry = f"({offsets[at]}, {positions[at]})"
            what = f"{entry}: no batch begins at this position"
            if begins[at]:
                what = f"{entry}: the batch ends at offset {table.last_offset[row[at]]}"
            self._wrong(self._offsets_path, what, int(offsets[at]))

    def _check_times(self, chunk: BatchChunk, newest_ms: Ints) -> None:
        last_offset = np.maximum.accumulate(chunk.table.last_offset)
        slots = self._slots(self._time_offsets, self._time_slot, int(last_offset[-1]) + 1)
        self._time_slot = slots.stop
        times_ms, offsets = self._times_ms[slots], self._time_offsets[slots]
        actual_ms = newest_ms[np.searchsorted(last_offset, offsets)]
        for at in np.flatnonzero(actual_ms != times_ms).tolist():
            entry = f"({times_ms[at]} ms, {offsets[at]})"
            what = f"{entry}: the largest timestamp up to this offset is {actual_ms[at]} ms"
            self._wrong(self._times_path, what, int(offsets[at]))

    @staticmethod
    def _slots(keys: Ints, first: int, end: int) -> slice:
        """Return the slots from `first` to the last in sequence whose key is below `end`."""
        above = np.flatnonzero(keys[first:] >= end)
        return slice(first, first + int(above[0]) if above.size else keys.size)

    def finish(self, end: int, *, is_lost: bool, has_broken: bool) -> None:
        """Check the entries after the last batch, which ends at byte `end`.

        `is_lost`: the walk stopped early, so what follows is unknown.
        """
        if is_lost:
            return
        positions = self._positions[self._offset_slot :]
        beyond = self._offset_slot + np.flatnonzero(positions >= end)
        self._add_beyond(self._offsets_path, beyond, self._offsets, self._positions)
        if not has_broken:
            beyond = np.arange(self._time_slot, self._times_ms.size)
            self._add_beyond(self._times_path, beyond, self._times_ms, self._time_offsets)

    def _add_beyond(self, path: Path, slots: Ints, first: Ints, second: Ints) -> None:
        if slots.size:
            what = f"({first[slots[0]]}, {second[slots[0]]}) is after the end of the log"
            self._wrong(path, what, None, more=int(slots.size) - 1)

    def _wrong(self, path: Path, what: str, offset: int | None, more: int = 0) -> None:
        self._findings.add(
            Finding(Severity.PROBLEM, Kind.INDEX, str(path), what, None, offset, more)
        )
