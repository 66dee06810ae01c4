"""Checks the sequence numbers of idempotent producers. Each batch continues the one before it:

    the same epoch      the next sequence; 0 follows 2**31-1
    a newer epoch       0
    an older epoch      is an error

The broker makes the same check when a batch is appended (storage/producer_entry.py). Where batches
are missing, a sequence may skip numbers, but never repeat or go back. A producer that was silent
for a day may have expired, and may continue with any sequence.
"""

from pathlib import Path
from typing import NamedTuple

from odradek.protocol.batch_header import MAX_SEQUENCE, BatchHeader, increment_sequence

from .findings import Findings, Kind, Tally
from .gap_check import GapCheck

_EXPIRATION_MS = 86_400_000  # producer.id.expiration.ms
_HALF = 1 << 30
_AT_START = "it is served as it is"


class _Skip(NamedTuple):
    """A batch before which sequence numbers are missing; `since`: the offset of the one before."""

    path: Path
    segment: int  # its base offset
    what: str
    since: int
    offset: int
    position: int


class ProducerCheck:
    """The producers of one log."""

    def __init__(self, gaps: GapCheck, findings: Findings) -> None:
        self._gaps = gaps
        self._findings = findings
        self._last: dict[int, BatchHeader] = {}  # by producer id
        self._wrong: dict[Path, Tally] = {}
        self._skips: list[_Skip] = []

    def add(self, header: BatchHeader, path: Path, segment: int, position: int) -> None:
        """Check the next batch, in the segment with this path and base offset."""
        producer_id = header.producer_id
        if producer_id < 0 or header.base_sequence < 0 or header.is_control:
            return
        before = self._last.get(producer_id)
        self._last[producer_id] = header
        if before is None or header.max_timestamp - before.max_timestamp >= _EXPIRATION_MS:
            return
        is_newer = header.producer_epoch > before.producer_epoch
        expected = 0
        if not is_newer:
            expected = increment_sequence(before.base_sequence, before.last_offset_delta + 1)
        ahead = (header.base_sequence - expected) & MAX_SEQUENCE
        where = f"after the batch at offset {before.base_offset}"
        epoch, offset = header.producer_epoch, header.base_offset
        if epoch < before.producer_epoch:
            what = f"epoch {epoch} {where}, which has epoch {before.producer_epoch}"
            self._add_wrong(path, f"producer {producer_id}: {what}", position, offset)
        elif ahead:
            what = f"sequence {header.base_sequence} of epoch {epoch} {where}; expected {expected}"
            what = f"producer {producer_id}: {what}"
            if not is_newer and ahead >= _HALF:
                self._add_wrong(path, what, position, offset)
            elif not self._gaps.is_cleaned(segment):
                skip = _Skip(path, segment, what, before.base_offset, offset, position)
                self._skips.append(skip)

    def _add_wrong(self, path: Path, what: str, position: int, offset: int) -> None:
        self._wrong.setdefault(path, Tally()).add(what, position=position, offset=offset)

    def end(self) -> None:
        """Report what was found, after the last batch."""
        self._findings.totals.producers += len(self._last)
        for skip in self._skips:
            is_cleaned = self._gaps.is_cleaned(skip.segment)
            if not is_cleaned and not self._gaps.has_missing(skip.since, skip.offset):
                self._add_wrong(skip.path, skip.what, skip.position, skip.offset)
        for path, tally in self._wrong.items():
            self._findings.problem(path, tally, _AT_START, Kind.SEQUENCE)
