"""`odradek pipeline archive`: what is missing in the archive is read, staged and committed.

Results are committed while the tasks still run, every few seconds: what a kill costs is the work
since then.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from odradek.pipeline.jobs.job_error import JobError
from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.told import QUIET, Told
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.storage.files import Files, LockHeldError

from .commit import Committer
from .compaction import compact
from .dated_files import StagedFile
from .entries import ArchivedFile, ArchivedRange
from .layout import ArchiveLayout, date_of
from .manifest import ArchiveState, Manifest
from .parquet_format import RECORD_SCHEMA
from .plan import LARGEST_SPLIT_BYTES, PartitionPlan, Planner, key_of, split_bytes, tasks_of
from .staging import StagedRange, StagingWork
from .summary import ArchiveSummary
from .typed_values import DEAD_LETTER_SCHEMA, TypedValues, schema_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COMMIT_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSettings:
    """What is to be archived, and how.

    `until_end`: the active segment, too. `values` is the schema of values that are JSON objects;
    without `keep_value` such a value's bytes are not kept. `max_split_bytes` bounds what one file
    is made of.
    """

    log_directories: Sequence[Path]
    archive: Path
    topics: TopicChoice = field(default_factory=TopicChoice)
    until_end: bool = False
    committed_only: bool = True
    values: pa.StructType | None = None
    keep_value: bool = True
    compact: bool = False
    verify_crc: bool = True
    max_split_bytes: int = LARGEST_SPLIT_BYTES

    def typed_values(self) -> TypedValues | None:
        """Raises JobError."""
        return None if self.values is None else TypedValues(self.values, self.keep_value)


def archive(spark: "SparkSession", settings: ArchiveSettings, told: Told = QUIET) -> ArchiveSummary:
    """Bring an archive up to date. Raises JobError, OSError."""
    from odradek.pipeline.jobs.spark_tasks import (
        SparkTasks,  # here, for pyspark need not be there for the rest
    )

    return run_archive(SparkTasks(spark), settings, told)


def plan_archive(settings: ArchiveSettings, files: Files | None = None) -> list[PartitionPlan]:
    """What a run would do now; nothing is written. Raises JobError, OSError."""
    files = files or Files()
    entries = Manifest(ArchiveLayout(settings.archive), files).entries()
    return _plans(settings, files, ArchiveState.of(entries))


def _plans(settings: ArchiveSettings, files: Files, state: ArchiveState) -> list[PartitionPlan]:
    directories = LogDirectories(settings.log_directories, files)
    planner = Planner(
        directories=directories,
        state=state,
        until_end=settings.until_end,
        committed_only=settings.committed_only,
    )
    return [planner.plan(each) for each in settings.topics.partitions(directories)]


def run_archive(
    runner: TaskRunner, settings: ArchiveSettings, told: Told, files: Files | None = None
) -> ArchiveSummary:
    """The same by any runner. Raises JobError, OSError."""
    settings.typed_values()  # what is wrong with it is said before anything is done
    files = files or Files()
    layout = ArchiveLayout(settings.archive)
    with _opened(files, layout) as committer:
        run = _Run(runner, settings, told, committer)
        run.read()
        if settings.compact:
            compact(runner, committer, settings.topics, run.summary, told)
        committer.sweep()
        return run.summary


@contextmanager
def _opened(files: Files, layout: ArchiveLayout) -> Iterator[Committer]:
    """The archive, locked, with what killed runs have left brought to an end."""
    run_id = uuid.uuid4().hex
    for directory in (layout.manifest, layout.staging):
        files.make_directory(directory)
        files.fsync_directory(directory.parent)
    try:
        lock = files.lock(layout.lock)
    except LockHeldError as error:
        raise JobError(f"another process archives into {layout.root}: {error}") from error
    try:
        manifest = Manifest(layout, files)
        entries = manifest.entries()
        committer = Committer(manifest, run_id, ArchiveState.of(entries))
        committer.take_over(entries)
        files.make_directory(layout.run(run_id))
        files.fsync_directory(layout.staging)
        yield committer
    finally:
        lock.release()


class _Run:
    """Reads what is missing, and commits it."""

    def __init__(
        self, runner: TaskRunner, settings: ArchiveSettings, told: Told, committer: Committer
    ) -> None:
        self._runner = runner
        self._settings = settings
        self._told = told
        self._committer = committer
        self._files = committer.manifest.files
        self._staged: list[StagedRange] = []
        self.summary = ArchiveSummary()

    def read(self) -> None:
        """All that is missing. What was committed stays so, whatever is raised."""
        plans = _plans(self._settings, self._files, self._committer.state)
        self.summary.planned(plans)
        self._partitions = _partition_counts(plans)
        lost = [each for plan in plans for each in plan.lost]
        if lost:
            self._committer.archive(lost, [], self._partitions)
        tasks = self._tasks(plans)
        committed_at = time.monotonic()
        try:
            with closing(self._runner.run(self._work(), tasks, "archive")) as results:
                for _, staged in results:
                    self._staged += staged
                    self._told.done(1)
                    if time.monotonic() - committed_at > _COMMIT_EVERY_S:
                        self._commit()
                        committed_at = time.monotonic()
        finally:
            self._commit()

    def _commit(self) -> None:
        staged, self._staged = self._staged, []
        for each in staged:
            self.summary.staged(each)
        ranges = [_archived(each) for each in staged if each.end > each.wanted.start]
        if ranges:
            files = [file for each in staged for file in self._archived_files(each)]
            self._committer.archive(ranges, files, self._partitions)
            self.summary.committed(files)

    def _tasks(self, plans: Sequence[PartitionPlan]) -> list[list[OffsetRange]]:
        total_bytes = sum(plan.size_bytes for plan in plans)
        if not any(plan.ranges for plan in plans):
            return []  # nor is the runner asked: Spark takes seconds to start
        max_bytes = split_bytes(
            total_bytes, self._runner.parallelism, self._settings.max_split_bytes
        )
        directories = LogDirectories(self._settings.log_directories, self._files)
        tasks = list(tasks_of(directories, plans, max_bytes))
        self._told.total("archiving", len(tasks))
        return tasks

    def _work(self) -> StagingWork:
        return StagingWork(
            log_directories=tuple(path.absolute() for path in self._settings.log_directories),
            layout=self._committer.manifest.layout,
            run_id=self._committer.run_id,
            typed_values=self._settings.typed_values(),
            verify_crc=self._settings.verify_crc,
            files=self._files,
        )

    def _archived_files(self, staged: StagedRange) -> Iterator[ArchivedFile]:
        typed = self._settings.typed_values()
        schema = RECORD_SCHEMA if typed is None else typed.schema
        for file in staged.files:
            yield _archived_file(staged, file, schema)
        for file in staged.dead_letter_files:
            yield _archived_file(staged, file, DEAD_LETTER_SCHEMA, is_dead_letters=True)


def _archived(staged: StagedRange) -> ArchivedRange:
    return ArchivedRange(
        of=key_of(staged.wanted.partition, staged.wanted.topic_id),
        start=staged.wanted.start,
        end=staged.end,
        records=sum(file.records for file in staged.files),
        dead_letters=sum(file.records for file in staged.dead_letter_files),
        absent=staged.absent,
        gaps=staged.gaps,
        lost=staged.lost,
    )


def _archived_file(
    staged: StagedRange, file: StagedFile, schema: pa.Schema, *, is_dead_letters: bool = False
) -> ArchivedFile:
    return ArchivedFile(
        of=key_of(staged.wanted.partition, staged.wanted.topic_id),
        path="",  # the commit gives it
        staged=file.path.name,
        date=date_of(file.day),
        records=file.records,
        size_bytes=file.size_bytes,
        first_offset=file.first_offset,
        last_offset=file.last_offset,
        times_ms=file.times_ms,
        schema_id=schema_id(schema),
        is_dead_letters=is_dead_letters,
    )


def _partition_counts(plans: Sequence[PartitionPlan]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for plan in plans:
        topic, partition = plan.partition
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return counts
