"""Looks at all partitions, and again at those in which something was found."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.told import QUIET, Told
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.storage.checkpoints import TopicPartition
from odradek.storage.files import Files

from .findings import Finding, Findings, Severity
from .partition_join import PartitionVerdict, join_segments
from .plan import (
    LogRoot,
    PartitionListing,
    cleaned_offsets,
    list_partition,
    list_root,
    note_root_strays,
    tasks_of,
)
from .segment_check import SegmentResult, SegmentWork, check_segments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOKS = 6  # the later ones read only what has changed, and what seems wrong
_Key = tuple[Path, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    """What is to be looked at; `deep`: every record, not only the headers and checksums."""

    log_directories: Sequence[Path]
    topics: TopicChoice | None = None  # None: all that is there, the metadata log too
    deep: bool = False


@dataclass(slots=True)
class VerifyReport:
    """What was found. `unsettled` partitions went on changing: nothing sure was found in them."""

    partitions: list[PartitionVerdict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unsettled: list[TopicPartition] = field(default_factory=list)
    is_running: bool = False

    @property
    def problems(self) -> int:
        """How many, with those that are not listed."""
        return self._count(Severity.PROBLEM)

    @property
    def notes(self) -> int:
        """The same."""
        return self._count(Severity.NOTE)

    def _count(self, severity: Severity) -> int:
        return sum(1 + each.more for each in self.findings if each.severity is severity)


def verify(spark: "SparkSession", settings: VerifySettings, told: Told = QUIET) -> VerifyReport:
    """Look at all segments. Raises JobError, OSError."""
    from odradek.pipeline.jobs.spark_tasks import (
        SparkTasks,  # here, for pyspark need not be there for the rest
    )

    return run_verify(SparkTasks(spark), settings, told)


def plan_verify(settings: VerifySettings) -> list[PartitionListing]:
    """What would be looked at. Raises JobError, OSError."""
    run = _Run(settings, Files())
    return list(run.listings(None).values())


def run_verify(runner: TaskRunner, settings: VerifySettings, told: Told = QUIET) -> VerifyReport:
    """The same by any runner. Raises JobError, OSError."""
    run = _Run(settings, Files())
    report = VerifyReport()
    verdicts: dict[_Partition, PartitionVerdict] = {}
    unsure: set[_Partition] | None = None
    for look in range(_LOOKS):
        seen = run.look(runner, unsure, told)
        unsure = {
            key
            for key, verdict in seen.items()
            if not _is_sure(verdict, verdicts.get(key) if look else None)
        }
        verdicts |= seen
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
    """Whether nothing was found, or was found before; what was not found again is left out."""
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
        self._known: dict[_Key, SegmentResult] = {}

    def _list_roots(self) -> list[LogRoot]:
        settings = self._settings
        chosen: set[str] | None = None
        if settings.topics is not None:
            directories = LogDirectories(settings.log_directories, self._files)
            chosen = {each.topic for each in settings.topics.partitions(directories)}
        return [list_root(self._files, path, chosen) for path in settings.log_directories]

    def listings(self, wanted: set[_Partition] | None) -> dict[_Partition, PartitionListing]:
        """Of these partitions, or of all; those that have gone are left out."""
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

    def look(
        self, runner: TaskRunner, wanted: set[_Partition] | None, told: Told
    ) -> dict[_Partition, PartitionVerdict]:
        """One look; what was found sound and has not changed since is not read again."""
        if wanted is not None:
            self.roots = self._list_roots()
        listings = self.listings(wanted)
        works = [
            work
            for listing in listings.values()
            for work in listing.segments
            if not self._is_known(work)
        ]
        self._check(runner, works, "verify" if wanted is None else "look again", told)
        self.root_findings = Findings()
        if self._settings.topics is None:
            for root in self.roots:
                note_root_strays(self._files, root.path, self.root_findings)
        cleaned = {
            root.path: cleaned_offsets(self._files, root.path, self.root_findings)
            for root in self.roots
        }
        verdicts: dict[_Partition, PartitionVerdict] = {}
        for key, listing in listings.items():
            results = [self._known[work.directory, work.base_offset] for work in listing.segments]
            offset = cleaned[key[0]].get(listing.partition, 0)
            verdicts[key] = join_segments(listing, results, offset)
        for key in (wanted or set()) - verdicts.keys():
            verdicts[key] = PartitionVerdict(key[1], [])  # deleted in the meantime
        return verdicts

    def _is_known(self, work: SegmentWork) -> bool:
        known = self._known.get((work.directory, work.base_offset))
        return known is not None and not known.findings and known.work == work

    def _check(
        self, runner: TaskRunner, works: list[SegmentWork], description: str, told: Told
    ) -> None:
        if not works:
            return
        tasks = tasks_of(works, runner.parallelism)
        told.total(description, len(works))
        with closing(runner.run(check_segments, tasks, description)) as found:
            for _, results in found:
                for result in results:
                    self._known[result.work.directory, result.work.base_offset] = result
                told.done(len(results))
