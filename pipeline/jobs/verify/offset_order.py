"""Checks that the offsets of a segment ascend, and finds which are missing.

A producer's batch has a record for each of its offsets. A batch that has fewer, or that has a
delete horizon, was written by the cleaner.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from odradek.pipeline.decoding.varints import Bools, Ints
from odradek.protocol.batch_header import DELETE_HORIZON_BIT
from odradek.storage.index_file import MAX_RELATIVE_OFFSET

from .findings import Findings, Kind
from .segment_walk import BatchChunk

_MAX_GAPS = 20


class Gap(NamedTuple):
    """Offsets in [first, end) are missing before the batch at `position`."""

    first: int
    end: int
    position: int


@dataclass(slots=True, kw_only=True)
class SegmentOffsets:
    """The offsets of a segment's valid batches. Epochs are -1 if no batch has one."""

    next_offset: int
    batches: int = 0
    records: int = 0
    was_cleaned: bool = False
    gaps: list[Gap] = field(default_factory=list)  # the first _MAX_GAPS
    gap_count: int = 0
    missing_offsets: int = 0
    first_epoch: int = -1
    last_epoch: int = -1


class OffsetOrder:
    """Checks the offsets of one segment, one chunk after another."""

    def __init__(self, base_offset: int, path: str, findings: Findings) -> None:
        self._base_offset = base_offset
        self._path = path
        self._findings = findings
        self._broken_before = 0  # broken batches before the last valid one
        self.offsets = SegmentOffsets(next_offset=base_offset)

    def check(self, chunk: BatchChunk, broken: list[int]) -> None:
        """Check the next chunk; `broken` are the positions of all broken batches so far."""
        table = chunk.table
        self.offsets.batches += table.height
        if chunk.is_messages:
            self.offsets.records += table.height
        # The offsets of a broken batch are unknown, so no gap can be found right after it.
        before = np.searchsorted(np.array(broken, np.int64), table.position)
        is_known = np.diff(before, prepend=self._broken_before) == 0
        self._broken_before = int(before[-1])
        reached = np.maximum.accumulate(
            np.concatenate(([self.offsets.next_offset], table.last_offset + 1))
        )
        expected = reached[:-1]
        self._check_order(chunk, expected)
        if not chunk.is_messages:
            self._check_counts(chunk)
            self._find_gaps(chunk, expected, is_known)
            self._check_epochs(chunk)
        self.offsets.next_offset = int(reached[-1])

    def knows_end(self, broken: list[int]) -> bool:
        """Whether there is no broken batch after the last valid one."""
        return len(broken) == self._broken_before

    def _check_order(self, chunk: BatchChunk, expected: Ints) -> None:
        table = chunk.table
        too_far = table.last_offset - self._base_offset > MAX_RELATIVE_OFFSET
        for row in np.flatnonzero((table.base_offset < expected) | too_far).tolist():
            self._problem(
                Kind.ORDER,
                f"offset {table.base_offset[row]}; expected {expected[row]} or more",
                chunk,
                row,
            )

    def _check_counts(self, chunk: BatchChunk) -> None:
        table = chunk.table
        span = table.last_offset - table.base_offset + 1
        self.offsets.records += int(table.record_count[~table.is_control].sum())
        for row in np.flatnonzero(table.record_count > span).tolist():
            what = f"{table.record_count[row]} records in {span[row]} offsets"
            self._problem(Kind.STRUCTURE, what, chunk, row)
        cleaned = (table.record_count < span) | (table.attributes & DELETE_HORIZON_BIT != 0)
        self.offsets.was_cleaned |= bool(cleaned.any())
        for row in np.flatnonzero(table.compression_id > 4).tolist():
            what = f"unknown compression id {table.compression_id[row]}"
            self._problem(Kind.STRUCTURE, what, chunk, row)

    def _find_gaps(self, chunk: BatchChunk, expected: Ints, is_known: Bools) -> None:
        table = chunk.table
        rows = np.flatnonzero((table.base_offset > expected) & is_known)
        self.offsets.gap_count += rows.size
        self.offsets.missing_offsets += int((table.base_offset - expected)[rows].sum())
        for row in rows[: _MAX_GAPS - len(self.offsets.gaps)].tolist():
            first, end = int(expected[row]), int(table.base_offset[row])
            self.offsets.gaps.append(Gap(first, end, int(table.position[row])))

    def _check_epochs(self, chunk: BatchChunk) -> None:
        epoch = chunk.table.partition_leader_epoch
        rows = np.flatnonzero(epoch >= 0)
        if not rows.size:
            return
        epoch = epoch[rows]
        if self.offsets.first_epoch < 0:
            self.offsets.first_epoch = int(epoch[0])
        reached = np.maximum.accumulate(np.concatenate(([self.offsets.last_epoch], epoch)))
        for index in np.flatnonzero(epoch < reached[:-1]).tolist():
            what = f"leader epoch {epoch[index]} follows {reached[index]}"
            self._problem(Kind.ORDER, what, chunk, int(rows[index]))
        self.offsets.last_epoch = int(reached[-1])

    def _problem(self, kind: Kind, what: str, chunk: BatchChunk, row: int) -> None:
        self._findings.problem(
            kind,
            self._path,
            what,
            position=int(chunk.table.position[row]),
            offset=int(chunk.table.base_offset[row]),
        )
