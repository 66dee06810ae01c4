"""Checks all partitions, and checks those with findings again."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from odradek.pipeline.jobs.progress import NO_PROGRESS, Progress
from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.storage.files import Files
from odradek.storage.topic_partition import TopicPartition

from .findings import Finding, Findings, Severity
from .partition_join import PartitionJoin, PartitionVerdict
from .plan import (
    LogRoot,
    PartitionListing,
    cleaned_offsets,
    divide_into_tasks,
    list_partition,
    list_root,
    note_unknown_files,
)
from .segment_check import SegmentResult, SegmentWork, check_segments

_MAX_PASSES = 6  # after the first, only what has changed or has findings is read
_SegmentKey = tuple[Path, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    """What to check. `deep`: each record, and not only headers and checksums.

    If `topics` is None, all logs are checked, including the metadata log.
    """

    log_directories: Sequence[Path]
    topics: TopicChoice | None = None
    deep: bool = False


@dataclass(slots=True)
class VerifyReport:
    """The result. Partitions in `unsettled` changed in each pass, so no finding was confirmed."""

    partitions: list[PartitionVerdict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unsettled: list[TopicPartition] = field(default_factory=list)
    is_running: bool = False

    @property
    def problems(self) -> int:
        """The number of problems, listed or not."""
        return self._count(Severity.PROBLEM)

    @property
    def notes(self) -> int:
        """The number of notes, listed or not."""
        return self._count(Severity.NOTE)

    def _count(self, severity: Severity) -> int:
        return sum(1 + each.more for each in self.findings if each.severity is severity)


def plan_verify(settings: VerifySettings) -> list[PartitionListing]:
    """Return what would be checked. Raises JobError, OSError."""
    run = _Run(settings, Files())
    return list(run.listings(None).values())


def run_verify(
    runner: TaskRunner, settings: VerifySettings, progress: Progress = NO_PROGRESS
) -> VerifyReport:
    """Check all segments. Raises JobError, OSError."""
    run = _Run(settings, Files())
    report = VerifyReport()
    verdicts: dict[_Partition, PartitionVerdict] = {}
    unsure: set[_Partition] | None = None
    for number in range(_MAX_PASSES):
        new = run.run_pass(runner, unsure, progress)
        unsure = {
            key
            for key, verdict in new.items()
            if not _is_sure(verdict, verdicts.get(key) if number else None)
        }
        verdicts |= new
        if not unsure:
            break
    report.is_running = any(root.is_running for root in run.roots)
    for key in sorted(verdicts, key=lambda key: (key[1], key[0])):
        verdict = verdicts[key]
        if key in (unsure or ()):
            report.unsettled.append(verdict.partition)
            verdict.findings = []
        report.partitions.append(verdict)
        report.findings += verdict.findings
    report.findings += run.root_findings.all()
    return report


_Partition = tuple[Path, TopicPartition]


def _is_sure(verdict: PartitionVerdict, before: PartitionVerdict | None) -> bool:
    """Whether there is no finding, or one that two passes made; drops those that one pass made."""
    if not verdict.findings:
        return True
    if before is None:
        return False
    known = {finding.identity for finding in before.findings}
    again = [finding for finding in verdict.findings if finding.identity in known]
    if again:
        verdict.findings = again
    return bool(again)


class _Run:
    def __init__(self, settings: VerifySettings, files: Files) -> None:
        self._settings = settings
        self._files = files
        self.roots = self._list_roots()
        self.root_findings = Findings()
        self._known: dict[_SegmentKey, SegmentResult] = {}

    def _list_roots(self) -> list[LogRoot]:
        settings = self._settings
        chosen: set[str] | None = None
        if settings.topics is not None:
            directories = LogDirectories(settings.log_directories, self._files)
            chosen = {each.topic for each in settings.topics.partitions(directories)}
        return [list_root(self._files, path, chosen) for path in settings.log_directories]

    def listings(self, wanted: set[_Partition] | None) -> dict[_Partition, PartitionListing]:
        """List these partitions, or all. Deleted ones are left out."""
        found: dict[_Partition, PartitionListing] = {}
        for root in self.roots:
            for partition in root.partitions:
                key = (root.path, partition)
                if wanted is not None and key not in wanted:
                    continue
                listing = list_partition(self._files, root, partition, deep=self._settings.deep)
                if listing is not None:
                    found[key] = listing
        return found

    def run_pass(
        self, runner: TaskRunner, wanted: set[_Partition] | None, progress: Progress
    ) -> dict[_Partition, PartitionVerdict]:
        """Check these partitions, or all; do not read unchanged segments without findings again."""
        if wanted is not None:
            self.roots = self._list_roots()
        listings = self.listings(wanted)
        works = [
            work
            for listing in listings.values()
            for work in listing.segments
            if not self._is_known(work)
        ]
        self._check(runner, works, "verify" if wanted is None else "verify again", progress)
        self.root_findings = Findings()
        if self._settings.topics is None:
            for root in self.roots:
                note_unknown_files(self._files, root.path, self.root_findings)
        cleaned = {
            root.path: cleaned_offsets(self._files, root.path, self.root_findings)
            for root in self.roots
        }
        verdicts: dict[_Partition, PartitionVerdict] = {}
        for key, listing in listings.items():
            results = [self._known[work.directory, work.base_offset] for work in listing.segments]
            offset = cleaned[key[0]].get(listing.partition, 0)
            verdicts[key] = PartitionJoin(listing, results, offset).run()
        for key in (wanted or set()) - verdicts.keys():
            verdicts[key] = PartitionVerdict(key[1], [])  # deleted since the first pass
        return verdicts

    def _is_known(self, work: SegmentWork) -> bool:
        known = self._known.get((work.directory, work.base_offset))
        return known is not None and not known.findings and known.work == work

    def _check(
        self, runner: TaskRunner, works: list[SegmentWork], description: str, progress: Progress
    ) -> None:
        if not works:
            return
        tasks = divide_into_tasks(works, runner.parallelism)
        progress.total(description, len(works))
        with closing(runner.run(check_segments, tasks, description)) as results_by_task:
            for _, results in results_by_task:
                for result in results:
                    self._known[result.work.directory, result.work.base_offset] = result
                progress.done(len(results))
