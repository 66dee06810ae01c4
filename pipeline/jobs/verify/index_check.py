"""Whether the entries of a segment's two indexes are true, told while its batches go by.

An entry of the offset index names a batch: where it begins, and its last offset. One of the time
index names the newest timestamp up to an offset, no more and no less. An index is read before its
log is opened: an entry is written after its batch. What is not used yet of the index of a segment
that is being written to is zeros.
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
from .segment_walk import WalkedPiece

_OFFSET_ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY = np.dtype([("timestamp_ms", ">i8"), ("offset", ">i4")])
assert _OFFSET_ENTRY.itemsize == OffsetIndex.entry.size
assert _TIME_ENTRY.itemsize == TimeIndex.entry.size


class IndexCheck:
    """Both indexes of one segment, as they were before its log was opened. Raises OSError."""

    def __init__(
        self, files: Files, log_path: Path, base_offset: int, findings: Findings, *, in_use: bool
    ) -> None:
        """`in_use`: somebody may be writing to the segment, or was killed while it was."""
        self._findings = findings
        self._base_offset = base_offset
        self._in_use = in_use
        self._newest_ms = NO_TIMESTAMP
        self._offsets_path = log_path.parent / segment_file(base_offset, FileKind.OFFSET_INDEX)
        self._times_path = log_path.parent / segment_file(base_offset, FileKind.TIME_INDEX)
        by_offset = self._read(files, self._offsets_path, _OFFSET_ENTRY)
        self._offsets: Ints = by_offset["offset"].astype(np.int64) + base_offset
        self._positions: Ints = by_offset["position"].astype(np.int64)
        by_time = self._read(files, self._times_path, _TIME_ENTRY)
        self._times_ms: Ints = by_time["timestamp_ms"].astype(np.int64)
        self._time_offsets: Ints = by_time["offset"].astype(np.int64) + base_offset
        rising = self._rising(self._offsets_path, self._offsets, self._positions)
        self._offsets, self._positions = self._offsets[:rising], self._positions[:rising]
        rising = self._rising(self._times_path, self._times_ms, self._time_offsets)
        self._times_ms, self._time_offsets = self._times_ms[:rising], self._time_offsets[:rising]
        self._offset_slot = self._time_slot = 0

    def _read(self, files: Files, path: Path, entry: np.dtype) -> np.ndarray:
        try:
            data = files.read(path)
        except FileNotFoundError:
            if not self._in_use:
                self._findings.problem(Kind.INDEX, str(path), "the index is missing")
            return np.zeros(0, entry)
        if self._in_use:
            used = -(-len(data.rstrip(b"\0")) // entry.itemsize)
            data = data[: used * entry.itemsize]
        if len(data) % entry.itemsize:
            what = f"its {len(data)} bytes are no multiple of {entry.itemsize}"
            self._findings.problem(Kind.INDEX, str(path), what)
        return np.frombuffer(data, entry, len(data) // entry.itemsize)

    def _rising(self, path: Path, first: Ints, second: Ints) -> int:
        """How many entries rise."""
        falls = np.flatnonzero((np.diff(first) <= 0) | (np.diff(second) < 0))
        if not falls.size:
            return int(first.size)
        at = int(falls[0])
        what = (
            f"entries do not rise: ({first[at + 1]}, {second[at + 1]}) behind "
            f"({first[at]}, {second[at]})"
        )
        self._findings.problem(Kind.INDEX, str(path), what)
        return at + 1

    # --- while batches go by

    def see(self, piece: WalkedPiece, behind: int, broken: list[int]) -> None:
        """The next piece, which ends at byte `behind`; `broken` are all broken batches so far."""
        self._see_positions(piece, behind, broken)
        newest = np.maximum.accumulate(
            np.concatenate(([self._newest_ms], piece.table.max_timestamp))
        )
        self._newest_ms = int(newest[-1])
        if broken:
            self._time_slot = self._times_ms.size  # its timestamps cannot be known
        else:
            self._see_times(piece, newest[1:])

    def _see_positions(self, piece: WalkedPiece, behind: int, broken: list[int]) -> None:
        table = piece.table
        slots = self._slots(self._positions, self._offset_slot, behind)
        self._offset_slot = slots.stop
        positions, offsets = self._positions[slots], self._offsets[slots]
        row = np.minimum(np.searchsorted(table.position, positions), table.height - 1)
        begins = table.position[row] == positions
        wrong: Bools = (~begins | (table.last_offset[row] != offsets)) & ~np.isin(positions, broken)
        for at in np.flatnonzero(wrong).tolist():
            said = f"({offsets[at]}, {positions[at]})"
            what = f"{said}: no batch begins there"
            if begins[at]:
                what = f"{said}: that batch ends at {table.last_offset[row[at]]}"
            self._wrong(self._offsets_path, what, int(offsets[at]))

    def _see_times(self, piece: WalkedPiece, newest_ms: Ints) -> None:
        last_offset = np.maximum.accumulate(piece.table.last_offset)
        slots = self._slots(self._time_offsets, self._time_slot, int(last_offset[-1]) + 1)
        self._time_slot = slots.stop
        times_ms, offsets = self._times_ms[slots], self._time_offsets[slots]
        found = newest_ms[np.searchsorted(last_offset, offsets)]
        for at in np.flatnonzero(found != times_ms).tolist():
            what = f"({times_ms[at]} ms, {offsets[at]}): up to there the newest is {found[at]} ms"
            self._wrong(self._times_path, what, int(offsets[at]))

    @staticmethod
    def _slots(keys: Ints, first: int, behind: int) -> slice:
        """The entries from slot `first` on that are below `behind`, as far as they rise."""
        above = np.flatnonzero(keys[first:] >= behind)
        return slice(first, first + int(above[0]) if above.size else keys.size)

    def end(self, behind: int, *, is_lost: bool, has_broken: bool) -> None:
        """All batches up to byte `behind` went by; `is_lost`: nobody knows what follows."""
        if is_lost:
            return
        positions = self._positions[self._offset_slot :]
        beyond = self._offset_slot + np.flatnonzero(positions >= behind)
        self._tell_beyond(self._offsets_path, beyond, self._offsets, self._positions)
        if not has_broken:
            beyond = np.arange(self._time_slot, self._times_ms.size)
            self._tell_beyond(self._times_path, beyond, self._times_ms, self._time_offsets)

    def _tell_beyond(self, path: Path, slots: Ints, first: Ints, second: Ints) -> None:
        if slots.size:
            what = f"({first[slots[0]]}, {second[slots[0]]}) lies behind the log"
            self._wrong(path, what, None, more=int(slots.size) - 1)

    def _wrong(self, path: Path, what: str, offset: int | None, more: int = 0) -> None:
        self._findings.add(
            Finding(Severity.PROBLEM, Kind.INDEX, str(path), what, None, offset, more)
        )
