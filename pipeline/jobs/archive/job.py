"""Implements `odradek pipeline archive`: reads, stages and commits what the archive lacks.

Results are committed every few seconds while tasks are running. If the job is killed, only the work
since the last commit is lost.
"""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from odradek.pipeline.jobs import JobError
from odradek.pipeline.jobs.progress import NO_PROGRESS, Progress
from odradek.pipeline.jobs.task_runner import TaskRunner
from odradek.pipeline.jobs.topic_choice import TopicChoice
from odradek.pipeline.reading.partitions import LogDirectories
from odradek.pipeline.reading.range_reader import OffsetRange
from odradek.storage.files import Files, LockHeldError

from .commit import Committer
from .compaction import compact
from .layout import ArchiveLayout
from .manifest import ArchiveState, Manifest
from .plan import (
    MAX_PART_BYTES,
    PartitionPlan,
    Planner,
    divide_into_tasks,
    part_size_bytes,
)
from .staging import StagedRange, StagingWork
from .summary import ArchiveSummary
from .value_schema import ValueSchema

_COMMIT_EVERY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSettings:
    """What to archive, and how.

    `until_end`: the active segment too. `values` is the schema of values that are JSON objects;
    without `keep_value`, the bytes of such values are not archived. `max_split_bytes` is the size
    of the part of a log that goes into one file, at most.
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
    max_split_bytes: int = MAX_PART_BYTES

    def value_schema(self) -> ValueSchema | None:
        """Return how to parse values, or None. Raises JobError."""
        return None if self.values is None else ValueSchema(self.values, self.keep_value)


def plan_archive(settings: ArchiveSettings, files: Files | None = None) -> list[PartitionPlan]:
    """Return what a run would do now; write nothing. Raises JobError, OSError."""
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
    runner: TaskRunner,
    settings: ArchiveSettings,
    progress: Progress = NO_PROGRESS,
    files: Files | None = None,
) -> ArchiveSummary:
    """Bring an archive up to date. Raises JobError, OSError."""
    settings.value_schema()  # raises for an invalid schema before anything is done
    files = files or Files()
    layout = ArchiveLayout(settings.archive)
    with _open_archive(files, layout) as committer:
        run = _Run(runner, settings, progress, committer)
        run.read()
        if settings.compact:
            compact(runner, committer, settings.topics, run.summary, progress)
        committer.delete_staging(committer.run_id)
        return run.summary


@contextmanager
def _open_archive(files: Files, layout: ArchiveLayout) -> Iterator[Committer]:
    """Lock the archive, and complete what killed runs have left."""
    run_id = uuid.uuid4().hex
    for directory in (layout.manifest, layout.staging):
        files.make_directory(directory)
        files.fsync_directory(directory.parent)
    try:
        lock = files.lock(layout.lock)
    except LockHeldError as error:
        raise JobError(f"another process is archiving to {layout.root}: {error}") from error
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
        self,
        runner: TaskRunner,
        settings: ArchiveSettings,
        progress: Progress,
        committer: Committer,
    ) -> None:
        self._runner = runner
        self._settings = settings
        self._progress = progress
        self._committer = committer
        self._files = committer.manifest.files
        self._staged: list[StagedRange] = []
        self.summary = ArchiveSummary()

    def read(self) -> None:
        """Read all that is missing. What was committed stays committed if an error is raised."""
        plans = _plans(self._settings, self._files, self._committer.state)
        self.summary.add_plans(plans)
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
                    self._progress.done(1)
                    if time.monotonic() - committed_at > _COMMIT_EVERY_S:
                        self._commit()
                        committed_at = time.monotonic()
        finally:
            self._commit()

    def _commit(self) -> None:
        staged, self._staged = self._staged, []
        for each in staged:
            self.summary.add_staged(each)
        ranges = [each.archived for each in staged if each.archived.end > each.archived.start]
        if ranges:
            files = [file for each in staged for file in each.files]
            self._committer.archive(ranges, files, self._partitions)
            self.summary.add_committed(files)

    def _tasks(self, plans: Sequence[PartitionPlan]) -> list[list[OffsetRange]]:
        total_bytes = sum(plan.size_bytes for plan in plans)
        if not any(plan.ranges for plan in plans):
            return []  # without asking the runner: Spark takes seconds to start
        max_bytes = part_size_bytes(
            total_bytes, self._runner.parallelism, self._settings.max_split_bytes
        )
        directories = LogDirectories(self._settings.log_directories, self._files)
        tasks = list(divide_into_tasks(directories, plans, max_bytes))
        self._progress.total("archiving", len(tasks))
        return tasks

    def _work(self) -> StagingWork:
        return StagingWork(
            log_directories=tuple(path.absolute() for path in self._settings.log_directories),
            layout=self._committer.manifest.layout,
            run_id=self._committer.run_id,
            value_schema=self._settings.value_schema(),
            verify_crc=self._settings.verify_crc,
            files=self._files,
        )


def _partition_counts(plans: Sequence[PartitionPlan]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for plan in plans:
        topic, partition = plan.partition
        counts[topic] = max(counts.get(topic, 0), partition + 1)
    return counts
