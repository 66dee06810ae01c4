"""Checks that the offsets of a segment ascend, and finds which are missing.

A producer's batch has a record for each of its offsets. A batch that has fewer, or that has a
delete horizon, was written by the cleaner.
"""

from typing import NamedTuple

import numpy as np

from odradek.pipeline.decoding.varints import Bools, Ints
from odradek.protocol.batch_header import DELETE_HORIZON_BIT
from odradek.storage.index_file import MAX_RELATIVE_OFFSET

from .findings import Findings, Kind
from .segment_walk import WalkedPiece

_MAX_GAPS = 20


class Gap(NamedTuple):
    """Offsets in [first, end) are missing before the batch at `position`."""

    first: int
    end: int
    position: int


class OffsetOrder:
    """Checks the offsets of one segment, one piece after another."""

    def __init__(self, base_offset: int, path: str, findings: Findings) -> None:
        self._base_offset = base_offset
        self._path = path
        self._findings = findings
        self._broken_before = 0  # broken batches before the last valid one
        self._epoch = -1
        self.first_epoch = -1
        self.next_offset = base_offset
        self.gaps: list[Gap] = []  # the first _MAX_GAPS
        self.gap_count = 0
        self.missing_offsets = 0
        self.was_cleaned = False
        self.records = 0
        self.batches = 0

    @property
    def last_epoch(self) -> int:
        """The newest leader epoch; -1 if there is none."""
        return self._epoch

    def check(self, piece: WalkedPiece, broken: list[int]) -> None:
        """Check the next piece; `broken` are the positions of all broken batches so far."""
        table = piece.table
        self.batches += table.height
        if piece.is_messages:
            self.records += table.height
        # The offsets of a broken batch are unknown, so no gap can be found right after it.
        before = np.searchsorted(np.array(broken, np.int64), table.position)
        is_known = np.diff(before, prepend=self._broken_before) == 0
        self._broken_before = int(before[-1])
        reached = np.maximum.accumulate(np.concatenate(([self.next_offset], table.last_offset + 1)))
        expected = reached[:-1]
        self._check_order(piece, expected)
        if not piece.is_messages:
            self._check_counts(piece)
            self._find_gaps(piece, expected, is_known)
            self._check_epochs(piece)
        self.next_offset = int(reached[-1])

    def knows_end(self, broken: list[int]) -> bool:
        """Whether there is no broken batch after the last valid one."""
        return len(broken) == self._broken_before

    def _check_order(self, piece: WalkedPiece, expected: Ints) -> None:
        table = piece.table
        too_far = table.last_offset - self._base_offset > MAX_RELATIVE_OFFSET
        for row in np.flatnonzero((table.base_offset < expected) | too_far).tolist():
            self._problem(
                Kind.ORDER,
                f"offset {table.base_offset[row]}; expected {expected[row]} or more",
                piece,
                row,
            )

    def _check_counts(self, piece: WalkedPiece) -> None:
        table = piece.table
        span = table.last_offset - table.base_offset + 1
        self.records += int(table.record_count[~table.is_control].sum())
        for row in np.flatnonzero(table.record_count > span).tolist():
            what = f"{table.record_count[row]} records in {span[row]} offsets"
            self._problem(Kind.STRUCTURE, what, piece, row)
        cleaned = (table.record_count < span) | (table.attributes & DELETE_HORIZON_BIT != 0)
        self.was_cleaned |= bool(cleaned.any())
        for row in np.flatnonzero(table.compression_id > 4).tolist():
            what = f"unknown compression id {table.compression_id[row]}"
            self._problem(Kind.STRUCTURE, what, piece, row)

    def _find_gaps(self, piece: WalkedPiece, expected: Ints, is_known: Bools) -> None:
        table = piece.table
        rows = np.flatnonzero((table.base_offset > expected) & is_known)
        self.gap_count += rows.size
        self.missing_offsets += int((table.base_offset - expected)[rows].sum())
        for row in rows[: _MAX_GAPS - len(self.gaps)].tolist():
            first, end = int(expected[row]), int(table.base_offset[row])
            self.gaps.append(Gap(first, end, int(table.position[row])))

    def _check_epochs(self, piece: WalkedPiece) -> None:
        epoch = piece.table.partition_leader_epoch
        rows = np.flatnonzero(epoch >= 0)
        if not rows.size:
            return
        epoch = epoch[rows]
        if self.first_epoch < 0:
            self.first_epoch = int(epoch[0])
        reached = np.maximum.accumulate(np.concatenate(([self._epoch], epoch)))
        for at in np.flatnonzero(epoch < reached[:-1]).tolist():
            what = f"leader epoch {epoch[at]} follows {reached[at]}"
            self._problem(Kind.ORDER, what, piece, int(rows[at]))
        self._epoch = int(reached[-1])

    def _problem(self, kind: Kind, what: str, piece: WalkedPiece, row: int) -> None:
        self._findings.problem(
            kind,
            self._path,
            what,
            position=int(piece.table.position[row]),
            offset=int(piece.table.base_offset[row]),
        )
