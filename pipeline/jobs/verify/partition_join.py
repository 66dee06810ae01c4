"""Checks the segments of one partition against each other."""

from dataclasses import dataclass

from odradek.storage.filenames import FileKind, segment_file
from odradek.storage.topic_partition import TopicPartition

from .findings import Finding, Findings, Kind
from .offset_order import Gap
from .plan import PartitionListing
from .producers import Producers
from .segment_check import SegmentResult, add_violation
from .transactions import OpenTransactions


@dataclass(slots=True)
class PartitionVerdict:
    """The result for one partition."""

    partition: TopicPartition
    findings: list[Finding]
    segments: int = 0
    log_bytes: int = 0
    batches: int = 0
    records: int = 0
    cleaned_gaps: int = 0
    cleaned_offsets: int = 0
    cleaned_to: int = 0
    producers: int = 0
    open_transactions: int = 0


class PartitionJoin:
    """Checks one partition, given the results of its segments in order of offset."""

    def __init__(
        self, listing: PartitionListing, results: list[SegmentResult], cleaner_offset: int
    ) -> None:
        """`cleaner_offset` is the cleaner's checkpoint."""
        self._listing = listing
        self._results = results
        cleaned_ends = [each.offsets.next_offset for each in results if each.offsets.was_cleaned]
        # The cleaner begins at the log's start, so it has cleaned everything before these offsets.
        self._cleaned_to = max([cleaner_offset, *cleaned_ends])
        self._findings = Findings()
        self._producers = Producers()
        self._transactions = OpenTransactions()
        self._verdict = PartitionVerdict(listing.partition, [], cleaned_to=self._cleaned_to)
        self._expected: int | None = None
        self._epoch = -1
        self._missing: list[tuple[int, int]] = []  # [first, end) of missing or unreadable batches

    def run(self) -> PartitionVerdict:
        """Check the segments, and return the result."""
        for finding in self._listing.findings.all():
            self._findings.add(finding)
        for result in self._results:
            if result.is_gone:
                self._expected = None
                self._missing.append((result.work.base_offset, result.work.base_offset + 1))
            else:
                self._add(result)
        self._verdict.producers = len(self._producers.batches)
        self._verdict.open_transactions = len(self._transactions.first_offsets)
        self._verdict.findings = self._findings.all()
        return self._verdict

    def _add(self, result: SegmentResult) -> None:
        verdict = self._verdict
        verdict.segments += 1
        verdict.log_bytes += result.log_bytes
        verdict.batches += result.offsets.batches
        verdict.records += result.offsets.records
        for finding in result.findings:
            self._findings.add(finding)
        is_cleaned = result.work.base_offset < self._cleaned_to
        self._check_beginning(result, is_cleaned=is_cleaned)
        self._add_gaps(result, is_cleaned=is_cleaned)
        self._check_producers(result, is_cleaned=is_cleaned)
        self._check_transactions(result)
        self._check_epochs(result)

    def _check_beginning(self, result: SegmentResult, *, is_cleaned: bool) -> None:
        base, expected = result.work.base_offset, self._expected
        path = str(result.work.path)
        if expected is not None and base < expected:
            what = f"the segment begins before the end of the previous one, {expected}"
            self._findings.problem(Kind.ORDER, path, what, offset=base)
        elif expected is not None and base > expected:
            self._add_gap(Gap(expected, base, 0), path, is_cleaned=is_cleaned)
        self._expected = result.offsets.next_offset if result.knows_end else None
        if result.has_broken:
            self._missing.append((base, max(result.offsets.next_offset, base) + 1))

    def _add_gaps(self, result: SegmentResult, *, is_cleaned: bool) -> None:
        if is_cleaned:
            self._verdict.cleaned_gaps += result.offsets.gap_count
            self._verdict.cleaned_offsets += result.offsets.missing_offsets
            return
        path = str(result.work.path)
        for gap in result.offsets.gaps:
            self._add_gap(gap, path, is_cleaned=False)

    def _add_gap(self, gap: Gap, path: str, *, is_cleaned: bool) -> None:
        self._missing.append((gap.first, gap.end))
        if is_cleaned:
            self._verdict.cleaned_gaps += 1
            self._verdict.cleaned_offsets += gap.end - gap.first
            return
        what = (
            f"offsets {gap.first} to {gap.end - 1} are missing, "
            "and there is no sign that the cleaner removed them"
        )
        self._findings.problem(Kind.GAP, path, what, position=gap.position, offset=gap.first)

    def _check_producers(self, result: SegmentResult, *, is_cleaned: bool) -> None:
        path = str(result.work.path)
        for violation in [*self._producers.join(result.producers), *result.sequence_gaps]:
            if not violation.is_gap or not (
                is_cleaned or self._has_missing(violation.since, violation.offset)
            ):
                add_violation(violation, path, self._findings)

    def _has_missing(self, since: int, offset: int) -> bool:
        """Whether batches between these offsets are known to be missing."""
        return any(first < offset and end > since for first, end in self._missing)

    def _check_transactions(self, result: SegmentResult) -> None:
        name = segment_file(result.work.base_offset, FileKind.TXN_INDEX)
        path = str(result.work.directory / name)
        for entry in self._transactions.join(result.transactions):
            if not self._has_missing(entry.first_offset, entry.last_offset):
                what, offset = entry.what, entry.last_offset
                self._findings.problem(Kind.TRANSACTION, path, what, offset=offset)

    def _check_epochs(self, result: SegmentResult) -> None:
        first = result.offsets.first_epoch
        if 0 <= first < self._epoch:
            what = f"leader epoch {first} follows {self._epoch}"
            self._findings.problem(Kind.ORDER, str(result.work.path), what)
        self._epoch = max(self._epoch, result.offsets.last_epoch)
