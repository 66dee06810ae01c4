"""Decides which missing offsets of a log the cleaner has removed. All others are problems.

The topic's present cleanup policy does not tell: it may have been changed. So this is inferred from
what the cleaner leaves: it stores how far it has cleaned, and writes batches that span more offsets
than they have records, as no producer does. The cleaner begins at the log's start, so before the
last place that it has reached any offset may be missing, and after it none.

A broker that is killed may have cleaned a log without storing how far. So missing offsets without a
sign of the cleaner are only noted if the metadata log says that the topic is compacted.
"""

from pathlib import Path
from typing import NamedTuple

from odradek.protocol.batch_header import DELETE_HORIZON_BIT, BatchHeader

from .findings import Findings, Kind, Tally


class _Gap(NamedTuple):
    """Offsets [first, end) are missing in the segment at `path`."""

    path: Path
    segment: int  # its base offset
    first: int
    end: int
    position: int  # in the file, in bytes, of the batch after the gap


class GapCheck:
    """The missing offsets of one log. `cleaner_offset` is the cleaner's checkpoint.

    `at_start` says what a broker does at its start about a gap that is not the cleaner's.
    """

    def __init__(
        self, cleaner_offset: int, findings: Findings, at_start: str, *, is_compacted: bool
    ) -> None:
        self._cleaned_to = cleaner_offset
        self._is_compacted = is_compacted
        self._findings = findings
        self._at_start = at_start
        self._gaps: list[_Gap] = []
        # The end of the last gap that was known to be the cleaner's when it was added.
        self._cleaned_end = 0
        self._lost: list[tuple[int, int]] = []  # offsets of batches that cannot be read

    def add(self, path: Path, segment: int, first: int, end: int, position: int) -> None:
        """Note that offsets [first, end) are missing before the batch at byte `position`.

        `segment` is the base offset of the file at `path`.
        """
        if self.is_cleaned(segment):  # not kept one by one: there may be millions
            self._findings.totals.cleaned_offsets += end - first
            self._cleaned_end = end
        else:
            self._gaps.append(_Gap(path, segment, first, end, position))

    def add_lost(self, first: int, end: int) -> None:
        """Note that batches somewhere in [first, end) cannot be read."""
        self._lost.append((first, max(end, first + 1)))

    def note_cleaned(self, next_offset: int) -> None:
        """Note that the segment that ends here has a batch that the cleaner has written."""
        self._cleaned_to = max(self._cleaned_to, next_offset)

    def is_cleaned(self, segment: int) -> bool:
        """Whether the cleaner has been in the segment with this base offset."""
        return segment < self._cleaned_to

    def has_missing(self, since: int, offset: int) -> bool:
        """Whether batches between these offsets are missing or cannot be read.

        The gaps of the cleaner were not kept: all before the last of them count as missing. That
        suffices, because callers do not ask about segments that the cleaner has reached, so its
        gaps are before `offset`.
        """
        spans = [*self._lost, *((gap.first, gap.end) for gap in self._gaps)]
        return since < self._cleaned_end or any(
            first < offset and end > since for first, end in spans
        )

    def end(self) -> None:
        """Report the gaps that are not the cleaner's, after the last batch."""
        by_path: dict[Path, Tally] = {}
        for gap in self._gaps:
            if self.is_cleaned(gap.segment):
                self._findings.totals.cleaned_offsets += gap.end - gap.first
                continue
            where = "before it" if gap.position == 0 else f"at byte {gap.position}"
            what = (
                f"offsets {gap.first} to {gap.end - 1} are missing {where}, and there is no sign"
                " that the cleaner has removed them"
            )
            tally = by_path.setdefault(gap.path, Tally())
            tally.add(what, position=gap.position, offset=gap.first)
        report = self._findings.note if self._is_compacted else self._findings.problem
        for path, tally in by_path.items():
            report(path, tally, self._at_start, Kind.GAP)


def is_cleaned_batch(header: BatchHeader) -> bool:
    """Whether only the cleaner writes such a batch."""
    span = header.last_offset_delta + 1
    return header.record_count < span or header.attributes & DELETE_HORIZON_BIT != 0
