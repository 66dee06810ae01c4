"""The segments of one partition, joined: what none of them can tell alone."""

from dataclasses import dataclass

from odradek.storage.checkpoints import TopicPartition
from odradek.storage.filenames import FileKind, segment_file

from .findings import Finding, Findings, Kind
from .order import Gap
from .plan import PartitionListing
from .producers import Producers
from .segment_check import SegmentResult, tell_misstep
from .transactions import OpenTransactions


@dataclass(slots=True)
class PartitionVerdict:
    """What is known of a partition when all its segments were looked at."""

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


def join_segments(
    listing: PartitionListing, results: list[SegmentResult], cleaner_offset: int
) -> PartitionVerdict:
    """`results` by their offsets; `cleaner_offset`: how far the cleaner has noted to have come."""
    return _Join(listing, results, cleaner_offset).run()


class _Join:
    def __init__(
        self, listing: PartitionListing, results: list[SegmentResult], cleaner_offset: int
    ) -> None:
        self._listing = listing
        self._results = results
        traces = [each.next_offset for each in results if each.was_cleaned]
        # The cleaner begins at the log's start: in front of where it has been, it has been too.
        self._cleaned_to = max([cleaner_offset, *traces])
        self._findings = Findings()
        self._producers = Producers()
        self._transactions = OpenTransactions()
        self._verdict = PartitionVerdict(listing.partition, [], cleaned_to=self._cleaned_to)
        self._expected: int | None = None
        self._epoch = -1
        self._holes: list[tuple[int, int]] = []  # first offset, and the one behind

    def run(self) -> PartitionVerdict:
        for finding in self._listing.findings.all():
            self._findings.add(finding)
        for result in self._results:
            if result.is_gone:
                self._expected = None
                self._holes.append((result.work.base_offset, result.work.base_offset + 1))
            else:
                self._add(result)
        self._verdict.producers = len(self._producers.edges)
        self._verdict.open_transactions = len(self._transactions.first_offsets)
        self._verdict.findings = self._findings.all()
        return self._verdict

    def _add(self, result: SegmentResult) -> None:
        verdict = self._verdict
        verdict.segments += 1
        verdict.log_bytes += result.log_bytes
        verdict.batches += result.batches
        verdict.records += result.records
        for finding in result.findings:
            self._findings.add(finding)
        is_cleaned = result.work.base_offset < self._cleaned_to
        self._see_beginning(result, is_cleaned=is_cleaned)
        self._see_gaps(result, is_cleaned=is_cleaned)
        self._see_producers(result, is_cleaned=is_cleaned)
        self._see_transactions(result)
        self._see_epochs(result)

    def _see_beginning(self, result: SegmentResult, *, is_cleaned: bool) -> None:
        base, expected = result.work.base_offset, self._expected
        path = str(result.work.path)
        if expected is not None and base < expected:
            what = f"it begins before the end of the segment before it, {expected}"
            self._findings.problem(Kind.ORDER, path, what, offset=base)
        elif expected is not None and base > expected:
            self._gap(Gap(expected, base, 0), path, is_cleaned=is_cleaned)
        self._expected = result.next_offset if result.knows_end else None
        if result.has_broken:
            self._holes.append((base, max(result.next_offset, base) + 1))

    def _see_gaps(self, result: SegmentResult, *, is_cleaned: bool) -> None:
        if is_cleaned:
            self._verdict.cleaned_gaps += result.gap_count
            self._verdict.cleaned_offsets += result.missing_offsets
            return
        path = str(result.work.path)
        for gap in result.gaps:
            self._gap(gap, path, is_cleaned=False)

    def _gap(self, gap: Gap, path: str, *, is_cleaned: bool) -> None:
        self._holes.append((gap.first, gap.behind))
        if is_cleaned:
            self._verdict.cleaned_gaps += 1
            self._verdict.cleaned_offsets += gap.behind - gap.first
            return
        what = (
            f"offsets {gap.first} to {gap.behind - 1} are missing, "
            "and nothing tells that the cleaner was there"
        )
        self._findings.problem(Kind.GAP, path, what, position=gap.position, offset=gap.first)

    def _see_producers(self, result: SegmentResult, *, is_cleaned: bool) -> None:
        path = str(result.work.path)
        for misstep in [*self._producers.join(result.producers), *result.skips]:
            if not misstep.skips or not (
                is_cleaned or self._is_in_hole(misstep.since, misstep.offset)
            ):
                tell_misstep(misstep, path, self._findings)

    def _is_in_hole(self, since: int, offset: int) -> bool:
        """Whether batches are known to be missing in between."""
        return any(first < offset and behind > since for first, behind in self._holes)

    def _see_transactions(self, result: SegmentResult) -> None:
        name = segment_file(result.work.base_offset, FileKind.TXN_INDEX)
        path = str(result.work.directory / name)
        for untold in self._transactions.join(result.transactions):
            if not self._is_in_hole(untold.first_offset, untold.last_offset):
                what, offset = untold.what, untold.last_offset
                self._findings.problem(Kind.TRANSACTION, path, what, offset=offset)

    def _see_epochs(self, result: SegmentResult) -> None:
        first, last = result.leader_epochs
        if 0 <= first < self._epoch:
            what = f"leader epoch {first} behind {self._epoch}"
            self._findings.problem(Kind.ORDER, str(result.work.path), what)
        self._epoch = max(self._epoch, last)
